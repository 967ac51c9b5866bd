import type { Message } from '@plugboard/kernel';
import type { ChatRequest, Script } from '@plugboard/testing';

/** How many rounds of tool calls a turn of each kind is made of. */
const ROUNDS = { plain: 0, tool: 1, tools: 2, count: 1 };
export type TurnKind = keyof typeof ROUNDS;

/** What a turn's user says: no two say the same. */
export function textOfTurn(who: string, number: number, kind: string): string {
  return `${who} says ${number} ${kind}`;
}

/** What the model answers to that, in the end. */
export function answerTo(text: string): string {
  return `Answer to ${text}, word by word.`;
}

/** What a server adds to a session of an agent that keeps what it was asked when it died. */
export const INTERRUPTED_NOTE = 'The previous answer was interrupted.';

/**
 * How a whole turn begins to differ from these messages, as half a sentence, or undefined where
 * they are one.
 */
export function differsFromWhole(messages: readonly Message[]): string | undefined {
  const [user, ...rest] = messages;
  const text = String(user?.content);
  const rounds = roundsOf(text);
  if (rest.length !== rounds * 2 + 1) return `has ${rest.length + 1} messages and not ${rounds * 2 + 2}`;
  for (let round = 0; round < rounds; round++) {
    const [asking, result] = rest.slice(round * 2);
    if (asking?.role !== 'assistant' || asking.tool_calls?.length !== 1) return `calls no tool in round ${round + 1}`;
    if (result?.role !== 'tool') return `has no result in round ${round + 1}`;
  }
  const last = rest.at(-1);
  if (last?.role !== 'assistant' || last.content !== answerTo(text)) return `ends with ${JSON.stringify(last)}`;
  return undefined;
}

/**
 * What the model does with a request: the same whenever it is asked, at its own pace.
 *
 * @param pause what passes before the next word.
 */
export function modelOf(request: ChatRequest, pause: () => Promise<unknown>): Script {
  const asked = request.messages.findLastIndex(({ role }) => role === 'user');
  const text = String(request.messages[asked]?.content);
  const round = request.messages.slice(asked).filter(({ role }) => role === 'tool').length;
  const slowly = function* (words: string) {
    for (const word of words.split(/(?<=\s)/)) {
      yield pause();
      yield word;
    }
  };
  if (round >= roundsOf(text)) return { text: slowly(answerTo(text)) };
  const id = `call_${asked}_${round}`;
  const timeZone = ['UTC', 'Asia/Tokyo'][round] as string;
  const call =
    kindOf(text) === 'count' ? { id, name: 'count', arguments: { text } } : { id, name: 'clock', arguments: { timeZone } };
  return { text: slowly('One moment.'), toolCalls: [call] };
}

/** How many rounds of tool calls a turn is made of whose user says that. */
export function roundsOf(text: string): number {
  return ROUNDS[kindOf(text)];
}

function kindOf(text: string): TurnKind {
  const kind = text.split(' ').at(-1) ?? '';
  return Object.hasOwn(ROUNDS, kind) ? (kind as TurnKind) : 'plain';
}
