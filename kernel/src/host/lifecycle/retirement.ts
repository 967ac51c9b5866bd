import type { Clock } from '../base/ambient.js';
import type { PluginError } from '../base/errors.js';
import type { Logger } from '../log/log.js';
import { EntryRunner, type LivingEntry } from './entry-runner.js';
import { StatusBoard } from './status-board.js';

/** Milliseconds that entries which left with a reload wait for the work that pins them. */
const LONGEST_WAIT = 60 * 60_000;

/** Entries that left together. */
interface Leaving {
  /** In start order. */
  readonly entries: readonly LivingEntry[];
  /** Stops them; the same promise if called again. */
  stop(): Promise<void>;
}

/**
 * Stops the entries that a reload removed or replaced.
 *
 * 1. They wait until the work that pins them has ended, an hour at most.
 * 2. Then they stop in reverse order, each under its time limit. Failures are logged.
 * 3. When the server stops, they are stopped last, whatever still pins them.
 */
export class Retirement {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #leaving = new Set<Leaving>();
  readonly #failures: PluginError[] = [];
  /** Milliseconds that an entry has to stop. */
  #timeToStop: () => number = () => Number.POSITIVE_INFINITY;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** The entries that have left and are not stopped yet. */
  get entries(): readonly string[] {
    return [...this.#leaving].flatMap(({ entries }) => entries.map(({ id }) => id));
  }

  /**
   * Takes entries that have left.
   * @param entries in start order.
   * @param unused resolves when the work that pins them has ended.
   */
  add(entries: readonly LivingEntry[], unused: Promise<unknown>): void {
    const status = new StatusBoard();
    for (const { id } of entries) status.add(id, 'running');
    const runner = new EntryRunner({ status, clock: this.#clock, log: this.#log });
    let stopping: Promise<void> | undefined;
    const stop = () => {
      deadline.cancel();
      stopping ??= this.#stop(entries, runner).finally(() => this.#leaving.delete(leaving));
      return stopping;
    };
    const leaving: Leaving = { entries, stop };
    const deadline = this.#clock.after(LONGEST_WAIT, () => {
      const names = entries.map(({ id }) => id).join(', ');
      this.#log.warn(`${names} left the configuration an hour ago and still had running work, which may now fail`);
      void stop();
    });
    this.#leaving.add(leaving);
    void unused.then(stop);
  }

  /**
   * Stops all that have left, at once.
   *
   * @param timeToStop milliseconds that an entry has.
   * @returns what failed to stop now.
   */
  async stopAll(timeToStop: () => number): Promise<readonly PluginError[]> {
    this.#timeToStop = timeToStop;
    const before = this.#failures.length;
    await Promise.all([...this.#leaving].map(({ stop }) => stop()));
    return this.#failures.slice(before);
  }

  async #stop(entries: readonly LivingEntry[], runner: EntryRunner): Promise<void> {
    for (const entry of entries.toReversed()) {
      const failure = await runner.stop(entry, this.#timeToStop());
      if (failure === undefined) continue;
      this.#failures.push(failure);
      this.#log.error({ err: failure.cause }, failure.message);
    }
  }
}
