import type { Message } from '@plugboard/kernel';
import { tokensOf } from './message-size.js';

/** How much of the stored messages the model may receive. */
export interface HistoryBudget {
  readonly tokens: number;
  readonly messages: number;
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
 * Moves the beginning of a view on to a step, where it stays for several turns: a provider's cache
 * serves a request up to the first difference. A step is an eighth to a quarter of the messages
 * that would fit, so few messages have none.
 *
 * @param start where the newest turns that fit begin.
 */
export function nextStep(history: readonly Message[], start: number): number {
  const step = 2 ** Math.floor(Math.log2((history.length - start) / 4));
  if (start === 0 || step < 2) return start;
  for (let i = Math.ceil(start / step) * step; i < history.length; i++) if (isStartOfTurn(history, i)) return i;
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
    if (isStartOfTurn(history, i)) return i;
  }
  return 0;
}

function isStartOfTurn(history: readonly Message[], index: number): boolean {
  return history[index]?.role === 'user' && isAnswer(history[index - 1]);
}

function isAnswer(message: Message | undefined): boolean {
  return message?.role === 'assistant' && (message.tool_calls?.length ?? 0) === 0;
}

/** Whether new messages start with results of the last turn's tool calls. */
export function startsWithToolResults(added: readonly Message[]): boolean {
  return added[0]?.role === 'tool' || added[0]?.role === 'function';
}
