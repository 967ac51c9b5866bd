import type { ChatRequest, Script } from '@plugboard/testing';

/**
 * How a turn ends at the model: with an answer, at its token limit, with an error of the model
 * server, or with an answer that waits in the middle until the game lets it go on.
 */
export const ENDS = ['answers', 'stops', 'fails', 'waits'] as const;
export type End = (typeof ENDS)[number];

/**
 * What the model calls in one round: `s` a tool of the server, `c` one of the client, `sc` both.
 */
export const ROUNDS = ['s', 'c', 'sc', 'ss'] as const;
export type Round = (typeof ROUNDS)[number];

/** What a user says, `p1t2 s sc waits`: a name that nobody else says, and what the model does. */
export interface Words {
  readonly name: string;
  readonly rounds: readonly Round[];
  readonly end: End;
}

export function wordsOf(text: string): Words {
  const [name = '', ...rest] = text.split(' ');
  return { name, end: rest.at(-1) as End, rounds: rest.slice(0, -1) as Round[] };
}

export function textOf({ name, rounds, end }: Words): string {
  return [name, ...rounds, end].join(' ');
}

/** The ids of the calls of one round. */
export function callsOf({ name, rounds }: Words, round: number): readonly string[] {
  return [...(rounds[round] ?? '')].map((kind, index) => `${name}_${round}${index}${kind}`);
}

/** Whether the client runs the tool of this call. */
export function isClientCall(id: string): boolean {
  return id.endsWith('c');
}

const ZONES = ['UTC', 'Asia/Tokyo', 'Africa/Cairo', 'Europe/Paris'];

/** The round of a call. */
export function roundOf(id: string): number {
  return Number(/_(\d)\d.$/.exec(id)?.[1]);
}

/** The time zone that a server call asks for: each call of a turn another, as a model would. */
export function zoneOf(id: string): string {
  return ZONES[roundOf(id) * 2 + Number(id.at(-2))] ?? 'UTC';
}

/** The server call that asks for a time zone. */
export function callForZone(name: string, zone: string): string {
  const place = ZONES.indexOf(zone);
  return `${name}_${Math.floor(place / 2)}${place % 2}s`;
}

export function answerTo(name: string): string {
  return `Answer to ${name}, 1️⃣ "piece" by \\piece.`;
}

/** What the user said last. */
export function lastText({ messages }: ChatRequest): string {
  return String(messages.findLast(({ role }) => role === 'user')?.content);
}

/**
 * What the model does in a round.
 *
 * @param goOn resolves when an answer that waits may go on.
 */
export function scriptOf(words: Words, round: number, goOn: Promise<unknown>): Script {
  const calls = callsOf(words, round);
  if (calls.length > 0) {
    return {
      toolCalls: calls.map((id) =>
        isClientCall(id)
          ? { id, name: 'lookup', arguments: ['{"of":"', id, '"}'] }
          : { id, name: 'clock', arguments: { timeZone: zoneOf(id) } },
      ),
    };
  }
  // A failure of the connection: after a refused request, a model is asked again without extras.
  if (words.end === 'fails') return { status: 401, body: { error: { message: 'It says no.' } } };
  const [first = '', ...rest] = answerTo(words.name).split(/(?<= )/);
  const text = [first, ...(words.end === 'waits' ? [goOn] : []), ...rest];
  return { text, ...(words.end === 'stops' && { finishReason: 'length' }) };
}
