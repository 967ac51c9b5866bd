import type { ChatRequest } from '@plugboard/testing';
import {
  answerTo,
  callForZone,
  callsOf,
  isClientCall,
  type Round,
  roundOf,
  textOf,
  type Words,
  wordsOf,
  zoneOf,
} from './words.js';

/**
 * A conversation as the model server is shown it, one line for each message, call and result:
 * `user p1t2 answers`, `call p1t2_00s`, `result p1t2_00s UTC`, `assistant Answer to p1t2 …`.
 */
export type Lines = readonly string[];

/** What a turn begins with, and what it leaves when it is kept. */
export interface Conversation {
  readonly lines: Lines;
  /** Client tool calls that have no result yet. */
  readonly open: readonly string[];
  /** What the user said last, and the next round of it: an answer to open calls goes on there. */
  readonly words: Words | undefined;
  readonly round: number;
  /** The number of the turn that made the open calls. */
  readonly by: number;
}

export const EMPTY: Conversation = { lines: [], open: [], words: undefined, round: 0, by: -1 };

/** What is new in a turn: what the user says, or the results of the open calls of a turn. */
export type Input = { readonly say: Words } | { readonly outputs: readonly string[]; readonly by: number };

/** A turn that is played to its end. */
export interface Played {
  /** What the model server must be shown before each round, without the prompt. */
  readonly shown: ReadonlyMap<number, Lines>;
  readonly after: Conversation;
  /** `calls`: it ends with calls of client tools. */
  readonly end: Words['end'] | 'calls';
}

/** Plays a turn: what follows from the protocol, whatever the surface. */
export function play(before: Conversation, input: Input, by: number): Played {
  const isAnswer = 'outputs' in input;
  const words = isAnswer ? before.words : input.say;
  if (!words) throw new Error('there are no open calls');
  const results = before.open.map((id) => `result ${id} ${isAnswer ? outputOf(id) : NO_RESULT}`);
  const lines = [...before.lines, ...results, ...(isAnswer ? [] : [`user ${textOf(words)}`])];
  const shown = new Map<number, Lines>();
  for (let round = isAnswer ? before.round : 0; round < words.rounds.length; round++) {
    shown.set(round, [...lines]);
    const calls = callsOf(words, round);
    lines.push(...calls.map((id) => `call ${id}`));
    lines.push(...calls.filter((id) => !isClientCall(id)).map((id) => `result ${id} ${zoneOf(id)}`));
    const open = calls.filter(isClientCall);
    if (open.length > 0) return { shown, after: { lines, open, words, round: round + 1, by }, end: 'calls' };
  }
  shown.set(words.rounds.length, [...lines]);
  if (words.end !== 'fails') lines.push(`assistant ${answerTo(words.name)}`);
  return { shown, after: { ...EMPTY, lines }, end: words.end };
}

/** What a client returns for a call of its tool. */
export function outputOf(id: string): string {
  return `found for ${id}`;
}

/** What the clock returns: `Sunday, 22 November 2026 at 17:00:00 UTC (UTC)`. */
const CLOCK = /^\w+, .* UTC.* \(([\w/]+)\)$/;

const NO_RESULT = 'Error: the caller returned no result for this call.';

/**
 * The request of a model server in the same form, and its prompt. The server chooses the ids of
 * calls: here they are named by what they ask for.
 */
export function linesOf({ messages }: ChatRequest): { readonly prompt: string; readonly lines: Lines } {
  const lines: string[] = [];
  const prompts: string[] = [];
  const names = new Map<unknown, string>();
  let said = '';
  for (const { role, content, tool_calls: calls, tool_call_id: id } of messages) {
    if (role === 'system') prompts.push(String(content));
    else if (role === 'tool') lines.push(`result ${names.get(id) ?? id} ${CLOCK.exec(String(content))?.[1] ?? content}`);
    else if (content !== null && content !== '') lines.push(`${role} ${content}`);
    if (role === 'user') said = wordsOf(String(content)).name;
    for (const call of (calls ?? []) as readonly WireCall[]) {
      const { of, timeZone } = JSON.parse(call.function.arguments) as { readonly of?: string; readonly timeZone?: string };
      const name = names.has(call.id) ? `${call.id} again` : (of ?? callForZone(said, timeZone ?? ''));
      names.set(call.id, name);
      lines.push(`call ${name}`);
    }
  }
  return { prompt: prompts.join(' | '), lines };
}

interface WireCall {
  readonly id: string;
  readonly function: { readonly arguments: string };
}

/** The round that the model is asked for. */
export function roundAfter(lines: Lines): number {
  const line = lines.findLast((one) => /^(?:user|call) /.test(one)) ?? '';
  return line.startsWith('call ') ? roundOf(line.slice('call '.length)) + 1 : 0;
}

/**
 * Whether two conversations are the same: the results of one round may come in any order.
 *
 * @param isResent items do not say which calls were made at once, so calls and results may come in
 *   any order until the next text.
 */
export function areEqual(one: Lines, other: Lines, isResent: boolean): boolean {
  const free = isResent ? /^(?:call|result) / : /^result /;
  return inOrder(one, free).join('\n') === inOrder(other, free).join('\n');
}

/** Sorts lines that follow one another and may come in any order. */
function inOrder(lines: Lines, free: RegExp): Lines {
  const ordered: string[] = [];
  let together: string[] = [];
  for (const line of [...lines, '']) {
    if (free.test(line)) together.push(line);
    else {
      ordered.push(...together.toSorted(), line);
      together = [];
    }
  }
  return ordered;
}

export function says(name: string, rounds: readonly Round[], end: Words['end']): Words {
  return wordsOf(textOf({ name, rounds, end }));
}
