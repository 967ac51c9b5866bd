import type { Message } from '@plugboard/kernel';
import type { ContentPart, StoredSession, Summary } from '@plugboard/kernel/contracts';
import { estimateTokens } from './message-size.js';

export type Conversation = Pick<StoredSession, 'messages' | 'summary'>;

/**
 * Prepends a summary to a conversation. The summary becomes part of the first user message, which
 * is valid everywhere. A separate user message would break the alternation of roles that many chat
 * templates require. A second system message is refused by some servers, and inside the prompt the
 * user's words would get the prompt's authority.
 */
export function withSummary(summary: Summary, conversation: readonly Message[]): readonly Message[] {
  const [first, ...others] = conversation;
  const text = shown(summary.text);
  if (first?.role !== 'user') return [{ role: 'user', content: text }, ...conversation];
  const content: string | ContentPart[] =
    typeof first.content === 'string' ? text + first.content : [{ type: 'text', text }, ...first.content];
  return [{ ...first, content }, ...others];
}

/** Estimated tokens of a summary in front of a conversation, at most. */
export function tokensOfSummary(text: string): number {
  return estimateTokens(JSON.stringify({ role: 'user', content: [{ type: 'text', text: shown(text) }] }));
}

function shown(text: string): string {
  return `<summary>\nWhat was said before in this conversation, in short:\n\n${text}\n</summary>\n\n`;
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

/** Whether new messages start with results of the last turn's tool calls. */
export function startsWithToolResults(added: readonly Message[]): boolean {
  return added[0]?.role === 'tool' || added[0]?.role === 'function';
}
