import type { StateChange, StateStore } from '@plugboard/kernel';

/**
 * A state whose process is killed at one of its changes: just before it, or just after. What was on
 * its way to the store is stored by then. From then on the process learns nothing more, and nothing
 * that it does has an effect.
 */
export class MortalState implements StateStore {
  readonly #store: StateStore;
  readonly #killAt: number;
  readonly #isKilledAfter: boolean;
  readonly #killed = Promise.withResolvers<void>();
  readonly #onTheWay = new Set<Promise<unknown>>();
  changes = 0;
  isDead = false;

  /** @param killAt the number of the change, from 1. Beyond the last one, nothing is killed. */
  constructor(store: StateStore, killAt: number, isKilledAfter: boolean) {
    this.#store = store;
    this.#killAt = killAt;
    this.#isKilledAfter = isKilledAfter;
  }

  /** Resolves when the process is dead. */
  get killed(): Promise<void> {
    return this.#killed.promise;
  }

  get(entry: string, key: string): Promise<string | undefined> {
    return this.#ask(() => this.#store.get(entry, key));
  }

  async change(changes: readonly StateChange[]): Promise<boolean> {
    if (!this.isDead) this.changes += 1;
    if (this.isDead || this.changes !== this.#killAt) return this.#ask(() => this.#store.change(changes));
    if (this.#isKilledAfter) await this.#store.change(changes);
    this.isDead = true;
    await Promise.allSettled(this.#onTheWay);
    this.#killed.resolve();
    return new Promise(() => {});
  }

  list(...args: Parameters<StateStore['list']>): ReturnType<StateStore['list']> {
    return this.#ask(() => this.#store.list(...args));
  }

  /** The answer of the store, unless the process is dead when it comes. */
  async #ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.isDead) return new Promise(() => {});
    const answer = call();
    this.#onTheWay.add(answer);
    try {
      const value = await answer;
      return this.isDead ? await new Promise<T>(() => {}) : value;
    } finally {
      this.#onTheWay.delete(answer);
    }
  }
}
