import type { Clock } from '@plugboard/kernel';
import { pause } from '../database/hints.js';
import type { Replica } from '../database/replica.js';
import { type LiveTable, PAST_END } from '../tables/live-table.js';

/** Milliseconds between two looks at what other servers have written. */
const LOOK = 250;

interface LiveText {
  readonly offer: string;
  /** Undefined: the offer has ended. */
  readonly text?: string;
}

/** Reads topics that other servers offer. A reader is a position in each offer. */
export class LiveReaders {
  readonly #table: LiveTable;
  readonly #replica: Replica;
  readonly #clock: Clock;
  /** How many readers each topic has. */
  readonly #readers = new Map<string, number>();

  constructor(table: LiveTable, replica: Replica, clock: Clock) {
    this.#table = table;
    this.#replica = replica;
    this.#clock = clock;
  }

  async *read(topic: string, signal: AbortSignal): AsyncIterable<LiveText> {
    this.#readers.set(topic, (this.#readers.get(topic) ?? 0) + 1);
    /** The place that was read last, by offer. */
    const read = new Map<string, number>();
    try {
      while (!signal.aborted) {
        const rows = await this.#table.next(topic, this.#replica.id, read);
        for (const { offer, place, texts } of rows) {
          const last = read.get(offer) ?? 0;
          if (last === PAST_END) continue;
          const isEnd = place !== last + 1 || texts.length === 0;
          read.set(offer, isEnd ? PAST_END : place);
          if (isEnd) yield { offer };
          else for (const text of texts) yield { offer, text };
        }
        if (rows.length === 0) await pause(this.#clock, LOOK, signal);
      }
    } finally {
      await this.#left(topic);
    }
  }

  async #left(topic: string): Promise<void> {
    const others = (this.#readers.get(topic) ?? 1) - 1;
    if (others > 0) this.#readers.set(topic, others);
    else {
      this.#readers.delete(topic);
      await this.#table.leave(topic, this.#replica.id).catch(() => {}); // ends with this server's lease
    }
  }
}
