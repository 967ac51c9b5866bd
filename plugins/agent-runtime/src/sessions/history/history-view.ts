import type { Message } from '@plugboard/kernel';
import { TurnError, withSummary } from '@plugboard/kernel/contracts';
import { tokensOf } from '../../engine/messages/message-size.js';
import { type Conversation, startsWithToolResults, tokensOfSummary, usableSummary } from './summary-view.js';

/**
 * What the model receives of a conversation that does not fit: the newest turns, a summary and the
 * newest turns, or an error.
 */
export interface HistoryOptions {
  readonly policy: 'truncate' | 'summarize' | 'error';
  /** Limits for the stored messages, without the new ones. */
  readonly maxMessages: number;
  readonly maxTokens: number;
}

/** How much of the stored messages the model may receive. */
export interface HistoryBudget {
  readonly tokens: number;
  readonly messages: number;
}

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

/**
 * Returns the index where the newest turns that fit begin.
 * @param from the lowest possible index.
 */
export function newestTurns(history: readonly Message[], from: number, added: readonly Message[], budget: HistoryBudget): number {
  let start = history.length;
  let used = 0;
  let needed = startsWithToolResults(added);
  while (start > from) {
    const begin = Math.max(from, startOfTurn(history, start - 1));
    for (let i = begin; i < start; i++) used += tokensOf(history[i] as Message);
    if (!needed && (used > budget.tokens || history.length - begin > budget.messages)) break;
    needed = false;
    start = begin;
  }
  return start;
}

/**
 * Returns a conversation without its oldest turns, as far as they exceed `tokens`. System messages
 * and the newest turn always stay.
 */
export function trimConversation(messages: readonly Message[], tokens: number): readonly Message[] {
  const first = Math.max(
    0,
    messages.findIndex(({ role }) => role !== 'system'),
  );
  const newest = first + startOfTurn(messages.slice(first), messages.length - first - 1);
  const [system, history, current] = [messages.slice(0, first), messages.slice(first, newest), messages.slice(newest)];
  const left = [...system, ...current].reduce((sum, message) => sum - tokensOf(message), tokens);
  const start = newestTurns(history, 0, [], { tokens: left, messages: history.length });
  return start === 0 ? messages : [...system, ...history.slice(start), ...current];
}

/**
 * Returns the index where the turn of the message at `index` begins: the first user message after
 * an answer.
 */
export function startOfTurn(history: readonly Message[], index: number): number {
  for (let i = index; i > 0; i--) {
    if (history[i]?.role === 'user' && isAnswer(history[i - 1])) return i;
  }
  return 0;
}

function isAnswer(message: Message | undefined): boolean {
  return message?.role === 'assistant' && (message.tool_calls?.length ?? 0) === 0;
}
