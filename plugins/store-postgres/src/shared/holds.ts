import { randomUUID } from 'node:crypto';
import { type Exclusive, LeaseEnded } from '@plugboard/kernel/contracts';
import type { Hints } from '../database/hints.js';
import type { Replica } from '../database/replica.js';
import type { HoldTable } from '../tables/hold-table.js';
import { FIRST_PAUSE, longer } from './pauses.js';

/** A name that this server holds. */
interface Held {
  readonly name: string;
  readonly holder: string;
  readonly ended: AbortController;
}

/** The names that this server holds alone. */
export class Holds {
  readonly #table: HoldTable;
  readonly #replica: Replica;
  readonly #hints: Hints;
  readonly #held = new Set<Held>();
  /** Given back, and whose rows are still to be removed. */
  readonly #leaving = new Set<Held>();

  constructor(table: HoldTable, replica: Replica, hints: Hints) {
    this.#table = table;
    this.#replica = replica;
    this.#hints = hints;
  }

  /** @throws the reason of the signal */
  async hold(name: string, signal: AbortSignal): Promise<Exclusive> {
    signal.throwIfAborted();
    const held: Held = { name, holder: randomUUID(), ended: new AbortController() };
    const hint = this.#hints.expect(`hold ${name}`);
    this.#held.add(held);
    try {
      for (let pause = FIRST_PAUSE; !(await this.#take(held)); pause = longer(pause)) await hint.wait(pause, signal);
      signal.throwIfAborted();
      return { signal: held.ended.signal, release: () => this.#release(held) };
    } catch (error) {
      void this.#release(held);
      throw error;
    } finally {
      hint.close();
    }
  }

  /** Removes the rows that could not be removed. */
  async check(): Promise<void> {
    for (const held of this.#leaving) await this.#release(held);
  }

  endAll(): void {
    for (const { ended } of this.#held) ended.abort(new LeaseEnded('expired'));
    this.#held.clear();
  }

  async #take({ name, holder }: Held): Promise<boolean> {
    return this.#table.take(name, this.#replica.id, holder);
  }

  /** Where the database cannot be reached, the row is removed later. */
  async #release(held: Held): Promise<void> {
    this.#held.delete(held);
    this.#leaving.add(held);
    try {
      await this.#table.release(held.name, held.holder);
      this.#leaving.delete(held);
      this.#hints.wake(`hold ${held.name}`);
    } catch {
      // The next renewal removes it.
    }
  }
}
