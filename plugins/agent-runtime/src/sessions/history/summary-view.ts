import type { Message } from '@plugboard/kernel';
import { type StoredSession, type Summary, withSummary } from '@plugboard/kernel/contracts';
import { estimateTokens } from '../../engine/messages/message-size.js';
import { startsWithToolResults } from '../../engine/messages/newest-turns.js';

export type Conversation = Pick<StoredSession, 'messages' | 'summary'>;

/** Estimated tokens of a summary in front of a conversation, at most. */
export function tokensOfSummary(text: string): number {
  const before = withSummary(text, [{ role: 'user', content: [] }]);
  return estimateTokens(JSON.stringify(before[0]));
}

/**
 * Returns the stored summary if the conversation can follow it: no tool result may follow whose
 * call is in the summary.
 */
export function usableSummary({ messages, summary }: Conversation, added: readonly Message[]): Summary | undefined {
  if (!summary || summary.messages > messages.length) return undefined;
  if (summary.messages === messages.length) return startsWithToolResults(added) ? undefined : summary;
  const startsTurn = messages[summary.messages]?.role === 'user' && messages[summary.messages - 1]?.role !== 'tool';
  return startsTurn ? summary : undefined;
}
