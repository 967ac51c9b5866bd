import type { Message } from '@plugboard/kernel';
import { TurnError, withSummary } from '@plugboard/kernel/contracts';
import type { HistoryOptions } from '../../engine/directory/agent.js';
import { type HistoryBudget, newestTurns } from '../../engine/messages/newest-turns.js';
import { type Conversation, tokensOfSummary, usableSummary } from './summary-view.js';

/** @param tokens available for stored messages in a request to the model. */
export function historyBudget({ maxMessages, maxTokens }: HistoryOptions, tokens: number): HistoryBudget {
  return { tokens: Math.min(tokens, maxTokens), messages: maxMessages };
}

/**
 * Returns what the model receives of a conversation: the newest turns that fit and the new
 * messages. Turns are whole, so a tool call is never separated from its result. Messages left out
 * stay stored. The cost does not depend on the length of the conversation.
 *
 * @param added the new messages. If they start with tool results, these belong to the last turn,
 *   which is then always included.
 * @throws TurnError `context_length_exceeded` if not everything fits and the policy is `error`.
 */
export function historyView(
  stored: Conversation,
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
  const start = newestTurns(messages, 0, added, budget);
  if (policy === 'error' && budget.tokens < 0) {
    throw new TurnError('context_length_exceeded', 'The message exceeds the context window of the model.');
  }
  if (policy === 'error' && start > 0) {
    throw new TurnError(
      'context_length_exceeded',
      'The conversation exceeds the context window of the model; start a new session.',
    );
  }
  return [...messages.slice(start), ...added];
}
