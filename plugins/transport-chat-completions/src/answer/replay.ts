import type { AgentEvents } from '@plugboard/kernel/contracts';
import type { Answer } from './completion.js';

/** Bytes of UTF-8 per piece of a replayed stream. */
const PIECE = 4096;

/** Returns the events of a replayed stream. */
export async function* eventsOf({ text, refusal = '', toolCalls, finished }: Answer): AgentEvents {
  for (const piece of piecesOf(text)) yield [{ type: 'text', text: piece }];
  for (const piece of piecesOf(refusal)) yield [{ type: 'text', text: piece, isRefusal: true }];
  if (toolCalls.length > 0) yield toolCalls;
  yield [finished];
}

function* piecesOf(text: string): Generator<string> {
  const [encoder, piece] = [new TextEncoder(), new Uint8Array(PIECE)];
  for (let start = 0; start < text.length; ) {
    const { read } = encoder.encodeInto(text.slice(start, start + PIECE), piece); // whole characters only
    yield text.slice(start, start + read);
    start += read;
  }
}
