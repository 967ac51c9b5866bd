import type { Message } from '@plugboard/kernel';
import { type StoredSession, type Summary, TurnError, withSummary } from '@plugboard/kernel/contracts';
import type { HistoryOptions } from '../../engine/directory/agent.js';
import { BYTES_PER_TOKEN, estimateTokens } from '../../engine/messages/message-size.js';
import { type HistoryBudget, newestTurns, nextStep, startsWithToolResults } from '../../engine/messages/newest-turns.js';
import type { TokenCount } from './token-count.js';

export interface StoredMessages extends Pick<StoredSession, 'messages' | 'summary'> {
  /** The size of all messages as JSON, and their tokens. Absent where they are not kept. */
  readonly bytes?: number;
  readonly count?: TokenCount;
}

/** @param tokens available for stored messages in a request to the model. */
export function historyBudget({ maxMessages, maxTokens }: HistoryOptions, tokens: number): HistoryBudget {
  return { tokens: Math.min(tokens, maxTokens), messages: maxMessages };
}

/**
 * Returns what the model receives of a conversation: the newest turns that fit and the new
 * messages. Its beginning moves in steps. Turns are whole, so a tool call is never separated from
 * its result. Messages left out stay stored. The cost does not depend on the length of the
 * conversation.
 *
 * @param added the new messages. If they start with tool results, these belong to the last turn,
 *   which is then always included.
 * @throws TurnError `context_length_exceeded` if not everything fits and the policy is `error`.
 */
export function historyView(
  stored: StoredMessages,
  added: readonly Message[],
  policy: HistoryOptions['policy'],
  budget: HistoryBudget,
): readonly Message[] {
  const { messages } = stored;
  const summary = policy === 'summarize' ? usableSummary(stored, added) : undefined;
  if (summary) {
    const beside = { ...budget, tokens: budget.tokens - tokensOfSummary(summary.text) };
    const start = newestTurns(messages, summary.messages, added, beside);
    if (beside.tokens >= 0) return withSummary(summary.text, [...messages.slice(start), ...added]);
  }
  const start = fitsWhole(stored, budget) ? 0 : newestTurns(messages, 0, added, budget);
  if (policy === 'error' && budget.tokens < 0) {
    throw new TurnError('context_length_exceeded', 'The message exceeds the context window of the model.');
  }
  if (policy === 'error' && start > 0) {
    throw new TurnError(
      'context_length_exceeded',
      'The conversation exceeds the context window of the model; start a new session.',
    );
  }
  const view = messages.slice(nextStep(messages, start));
  view.push(...added);
  return view;
}

/**
 * Whether the whole conversation fits, as most do. This takes the same time for every length. One
 * that is much too long by its size is not counted.
 */
function fitsWhole({ messages, bytes, count }: StoredMessages, budget: HistoryBudget): boolean {
  if (bytes === undefined || bytes > budget.tokens * BYTES_PER_TOKEN || messages.length > budget.messages) return false;
  return count !== undefined && count.of(messages) <= budget.tokens;
}

/** Estimated tokens of a summary in front of a conversation, at most. */
export function tokensOfSummary(text: string): number {
  const before = withSummary(text, [{ role: 'user', content: [] }]);
  return estimateTokens(JSON.stringify(before[0]));
}

/**
 * Returns the stored summary if the conversation can follow it: no tool result may follow whose
 * call is in the summary.
 */
export function usableSummary({ messages, summary }: StoredMessages, added: readonly Message[]): Summary | undefined {
  if (!summary || summary.messages > messages.length) return undefined;
  if (summary.messages === messages.length) return startsWithToolResults(added) ? undefined : summary;
  const startsTurn = messages[summary.messages]?.role === 'user' && messages[summary.messages - 1]?.role !== 'tool';
  return startsTurn ? summary : undefined;
}
