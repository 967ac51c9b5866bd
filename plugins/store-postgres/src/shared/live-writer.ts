import { randomUUID } from 'node:crypto';
import type { Clock } from '@plugboard/kernel';
import { pause } from '../database/hints.js';
import type { Replica } from '../database/replica.js';
import type { LiveTable } from '../tables/live-table.js';

/** Milliseconds for which texts are collected before they are written. */
const COLLECT = 150;
/** Characters that are collected: a source that is faster waits. */
const MAX_COLLECTED = 256 * 1024;
/** Milliseconds for which the texts stay after their end: readers are late by less. */
const KEEP = 30_000;

/** Writes the texts of one offer for the servers that read it. */
export class LiveWriter {
  readonly #table: LiveTable;
  readonly #replica: Replica;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  readonly #offer = randomUUID();
  #place = 0;
  readonly #collected: string[] = [];
  #size = 0;
  #failed = false;

  constructor(table: LiveTable, replica: Replica, clock: Clock) {
    this.#table = table;
    this.#replica = replica;
    this.#clock = clock;
  }

  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Writes until the source ends. Then its rows stay for a while, unless no server reads them.
   * @returns whether all of it was written
   */
  async write(topic: string, open: (signal: AbortSignal) => AsyncIterable<string>): Promise<boolean> {
    const { signal } = this.#stopped;
    try {
      let writing: Promise<void> | undefined;
      for await (const text of open(signal)) {
        this.#collected.push(text);
        this.#size += text.length;
        writing ??= this.#writeLater(topic).finally(() => {
          writing = undefined;
        });
        if (this.#size >= MAX_COLLECTED) await writing;
      }
      await writing;
      await this.#add(topic, []);
    } catch {
      this.#failed = true;
    }
    if (!this.#failed) await pause(this.#clock, KEEP, signal);
    // Where that fails too, a sweep removes what servers have left behind.
    await this.#table.remove(topic, this.#offer).catch(() => {});
    return !this.#failed;
  }

  /** Writes what comes until nothing more has come. A failure ends the source. */
  async #writeLater(topic: string): Promise<void> {
    while (this.#collected.length > 0 && !this.#failed) {
      await pause(this.#clock, COLLECT, this.#stopped.signal);
      const texts = this.#collected.splice(0);
      this.#size = 0;
      await this.#add(topic, texts).catch(() => {
        this.#failed = true;
        this.stop();
      });
    }
  }

  async #add(topic: string, texts: readonly string[]): Promise<void> {
    const place = ++this.#place;
    const row = { offer: this.#offer, place, texts };
    if (!(await this.#table.add(topic, row, this.#replica.id))) throw new Error('the texts before these are gone');
  }
}
