import type { Message } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';
import { tokensOf } from './message-size.js';
import { answersCalls, type Conversation, tokensOfSummary, usableSummary, withSummary } from './summary-view.js';

/** How much of a long conversation the model is given: the newest turns that fit, the same behind a summary of the older ones, or all of it or nothing. */
export interface HistoryOptions {
  readonly policy: 'truncate' | 'summarize' | 'error';
  /** Limits of what is kept; the new messages come on top. */
  readonly maxMessages: number;
  readonly maxTokens: number;
}

/** What the model can be given of what was said before. */
export interface HistoryBudget {
  readonly tokens: number;
  readonly messages: number;
}

/** @param tokens that are left for the conversation in a request to the model. */
export function historyBudget({ maxMessages, maxTokens }: HistoryOptions, tokens: number): HistoryBudget {
  return { tokens: Math.min(tokens, maxTokens), messages: maxMessages };
}

/**
 * What the model is given of a conversation, the new messages included: its newest turns, each whole, so that no tool call is parted from its result. What is left out stays kept. Looks
 * at no more than it returns, so that a turn costs the same however long the conversation is.
 *
 * @param added the new messages; results at their beginning belong to the last turn, which is then given in any case.
 * @throws TurnError `context_length_exceeded` where not all of it fits and the policy is `error`.
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
    if (beside.tokens >= 0) return withSummary(summary, [...messages.slice(start), ...added]);
  }
  const start = newestTurns(messages, 0, added, budget);
  if (start > 0 && policy === 'error') {
    throw new TurnError('context_length_exceeded', 'The conversation is longer than the model can take; begin a new session.');
  }
  return [...messages.slice(start), ...added];
}

/** Where the newest turns begin that fit. @param from what is older than this is not looked at. */
export function newestTurns(history: readonly Message[], from: number, added: readonly Message[], budget: HistoryBudget): number {
  let start = history.length;
  let used = 0;
  let needed = answersCalls(added);
  while (start > from) {
    const begin = Math.max(from, beginningOfTurn(history, start - 1));
    for (let i = begin; i < start; i++) used += tokensOf(history[i] as Message);
    if (!needed && (used > budget.tokens || history.length - begin > budget.messages)) break;
    needed = false;
    start = begin;
  }
  return start;
}

/** Where the turn begins that the message at `index` belongs to: at the first user message behind an answer. */
export function beginningOfTurn(history: readonly Message[], index: number): number {
  for (let i = index; i > 0; i--) {
    if (history[i]?.role === 'user' && isAnswer(history[i - 1])) return i;
  }
  return 0;
}

function isAnswer(message: Message | undefined): boolean {
  return message?.role === 'assistant' && (message.tool_calls?.length ?? 0) === 0;
}
