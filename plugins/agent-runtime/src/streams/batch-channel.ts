import type { AgentEvent } from '@plugboard/kernel';
import { Channel } from './channel.js';

/** Events that one step of a turn wrote at once. */
export type Batch = readonly AgentEvent[];

/**
 * Approximate bytes buffered for a slow reader. Beyond them the turn waits, and with it the model's
 * socket.
 */
const CHANNEL_SIZE = 64 * 1024;
/** What an event counts in addition to its text. */
const EVENT_OVERHEAD = 64;

/** Approximate size of a batch in memory, in bytes. */
export function sizeOf(batch: Batch): number {
  let size = 0;
  for (const event of batch) {
    size += EVENT_OVERHEAD;
    if (event.type === 'text') size += (event.json ?? event.text).length;
    else if (event.type === 'reasoning') size += event.text.length;
    else if (event.type === 'tool-call') size += event.arguments.length;
    else if (event.type === 'tool-result') size += event.images.reduce((sum, image) => sum + image.length, event.content.length);
  }
  return size;
}

/**
 * Creates the buffer between a turn and one reader.
 *
 * @param onReturn called when the reader stops before the end.
 * @param replayed size of the earlier events that the reader receives first.
 */
export function batchChannel(onReturn: () => void, replayed = 0): Channel<Batch> {
  return new Channel(replayed + CHANNEL_SIZE, sizeOf, onReturn);
}
