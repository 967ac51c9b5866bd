import { TurnError } from '../event.js';
import type { Message } from '../message.js';
import type { ToolDeclaration } from '../points/model-connector.js';

/** How much of a long conversation the model is given: the newest turns that fit, or all of it or nothing. */
export interface HistoryRules {
  readonly policy: 'truncate' | 'error';
  /** Limits of what is kept; the new messages come on top. */
  readonly maxMessages: number;
  readonly maxTokens: number;
}

/** Bytes of JSON text that are taken for a token: an estimate, where nobody has counted. */
const BYTES_PER_TOKEN = 4;

/**
 * The part of a conversation that the model is given: its newest turns, each whole, so that no tool call is parted from its result. What is left out stays kept. Looks at no more than it
 * returns, so that a turn costs the same however long the conversation is.
 *
 * @param added the new messages; results at their beginning belong to the last turn, which is then given in any case.
 * @param room tokens that are left for the conversation in a request to the model.
 * @throws TurnError `context_length_exceeded` where not all of it fits and the policy is `error`.
 */
export function viewOf(
  history: readonly Message[],
  added: readonly Message[],
  rules: HistoryRules,
  room: number,
): readonly Message[] {
  const tokens = Math.min(room, rules.maxTokens);
  let start = history.length;
  let used = 0;
  let needed = added[0]?.role === 'tool';
  while (start > 0) {
    const begin = beginningOfTurn(history, start - 1);
    for (let i = begin; i < start; i++) used += tokensOf(history[i] as Message);
    if (!needed && (used > tokens || history.length - begin > rules.maxMessages)) break;
    needed = false;
    start = begin;
  }
  if (start > 0 && rules.policy === 'error') {
    throw new TurnError('context_length_exceeded', 'The conversation is longer than the model can take; begin a new session.');
  }
  return start === 0 ? history : history.slice(start);
}

/** About how many tokens a message takes, or a list of tools. What was counted once is remembered as long as it is there. */
export function tokensOf(value: Message | readonly ToolDeclaration[]): number {
  let tokens = counted.get(value);
  if (tokens === undefined) {
    tokens = estimate(JSON.stringify(value));
    counted.set(value, tokens);
  }
  return tokens;
}

/** About how many tokens a text takes. */
export function estimate(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

const counted = new WeakMap<object, number>();

/** Where the turn begins that the message at `index` belongs to: at the first user message behind an answer. */
function beginningOfTurn(history: readonly Message[], index: number): number {
  for (let i = index; i > 0; i--) {
    if (history[i]?.role === 'user' && isAnswer(history[i - 1])) return i;
  }
  return 0;
}

function isAnswer(message: Message | undefined): boolean {
  return message?.role === 'assistant' && (message.tool_calls?.length ?? 0) === 0;
}
