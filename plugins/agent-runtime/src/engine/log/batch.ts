import type { AgentEvent } from '@plugboard/kernel';
import { isTerminal, type TurnFailed, type TurnFinished } from '@plugboard/kernel/contracts';
import { sizeOfEvent } from './event-size.js';

/** Events that one step of a turn wrote at once. */
export type Batch = readonly AgentEvent[];

/** The event that ends a turn. */
export type TurnEnd = TurnFinished | TurnFailed;

/** What an event counts in addition to what it holds. */
const EVENT_OVERHEAD = 64;
/** What it counts where many are joined to one text. */
const JOINED_OVERHEAD = 8;

/** Approximate size of a batch in memory, in bytes. */
export function sizeOf(batch: Batch): number {
  return contentSize(batch) + (EVENT_OVERHEAD - JOINED_OVERHEAD) * batch.length;
}

/** Approximate bytes of what a reader makes of a batch. */
export function contentSize(batch: Batch): number {
  let size = 0;
  for (const event of batch) size += JOINED_OVERHEAD + sizeOfEvent(event);
  return size;
}

/** The terminal event of a batch, if it has one. It is the last event. */
export function endOf(batch: Batch): TurnEnd | undefined {
  const last = batch.at(-1);
  return last && isTerminal(last) ? last : undefined;
}

/** Returns a batch without what follows its terminal event. */
export function untilEnd(batch: Batch): Batch {
  const index = batch.findIndex(isTerminal);
  return index < 0 || index === batch.length - 1 ? batch : batch.slice(0, index + 1);
}
