import type { AgentEvents } from '@plugboard/kernel/contracts';
import { piecesOf } from '@plugboard/turn-routes';
import type { Answer } from './completion.js';

/** Characters per piece of a replayed stream: at most 4 KiB of UTF-8. */
const PIECE = 1365;

/** Returns the events of a replayed stream. */
export async function* eventsOf({ text, refusal = '', toolCalls, finished }: Answer): AgentEvents {
  for (const piece of piecesOf(text, PIECE)) yield [{ type: 'text', text: piece }];
  for (const piece of piecesOf(refusal, PIECE)) yield [{ type: 'text', text: piece, isRefusal: true }];
  if (toolCalls.length > 0) yield toolCalls;
  yield [finished];
}
