import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import type { Replica } from '../database/replica.js';
import type { LiveTable } from '../tables/live-table.js';
import { LiveWriter } from './live-writer.js';

type Open = (signal: AbortSignal) => AsyncIterable<string>;

/** Milliseconds between two looks at what other servers read, while there is an offer. */
const LOOK = 500;
/** Milliseconds until the first look: offers that come together are looked at together. */
const FIRST_LOOK = 100;

interface Offer {
  readonly topic: string;
  readonly open: Open;
  /** Writes it, or has written all of it, for the servers that read it. */
  writer: LiveWriter | undefined;
}

/**
 * The offers of this server. As long as there is one, it looks every 500 ms whether another server
 * reads it. What is read is opened and written from its beginning, until no server reads it any
 * more. Nothing is written for the others.
 */
export class LiveOffers {
  readonly #table: LiveTable;
  readonly #replica: Replica;
  readonly #clock: Clock;
  readonly #offers = new Set<Offer>();
  readonly #writers = new Set<LiveWriter>();
  /** Set while there are offers. */
  #timer: Timer | undefined;

  constructor(table: LiveTable, replica: Replica, clock: Clock) {
    this.#table = table;
    this.#replica = replica;
    this.#clock = clock;
  }

  /** @returns what withdraws the offer. What is being written of it is written to its end. */
  offer(topic: string, open: Open): () => void {
    const offer: Offer = { topic, open, writer: undefined };
    this.#offers.add(offer);
    this.#timer ??= this.#clock.after(FIRST_LOOK, () => void this.#look());
    return () => void this.#offers.delete(offer);
  }

  close(): void {
    this.#offers.clear();
    this.#timer?.cancel();
    for (const writer of this.#writers) writer.stop();
  }

  async #look(): Promise<void> {
    const topics = [...new Set([...this.#offers].map(({ topic }) => topic))];
    try {
      const wanted = await this.#table.wanted(topics, this.#replica.id);
      for (const offer of this.#offers) this.#settle(offer, wanted.has(offer.topic));
    } catch {
      // It looks again, like all that needs the database.
    }
    this.#timer = this.#offers.size === 0 ? undefined : this.#clock.after(LOOK, () => void this.#look());
  }

  #settle(offer: Offer, isWanted: boolean): void {
    if (isWanted && !offer.writer) {
      const writer = new LiveWriter(this.#table, this.#replica, this.#clock);
      offer.writer = writer;
      this.#writers.add(writer);
      void writer.write(offer.topic, offer.open).then((isWritten) => {
        this.#writers.delete(writer);
        if (!isWritten && offer.writer === writer) offer.writer = undefined;
      });
    }
    if (!isWanted && offer.writer) {
      offer.writer.stop();
      offer.writer = undefined;
    }
  }
}
