import type { StateChange, StateStore } from '@plugboard/kernel';

/**
 * A state whose process is killed at one of its changes: just before it, or just after. From then
 * on nothing that the process does has an effect, and it learns nothing more.
 */
export class MortalState implements StateStore {
  readonly #store: StateStore;
  readonly #killAt: number;
  readonly #isKilledAfter: boolean;
  readonly #killed = Promise.withResolvers<void>();
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

  async get(entry: string, key: string): Promise<string | undefined> {
    return this.isDead ? new Promise(() => {}) : this.#store.get(entry, key);
  }

  async change(changes: readonly StateChange[]): Promise<void> {
    if (this.isDead) return new Promise(() => {});
    this.changes += 1;
    const isLast = this.changes === this.#killAt;
    if (!isLast || this.#isKilledAfter) await this.#store.change(changes);
    if (!isLast) return;
    this.isDead = true;
    this.#killed.resolve();
    await new Promise(() => {});
  }

  async compareAndSet(change: StateChange, expected: string | undefined): Promise<boolean> {
    return this.isDead ? new Promise(() => {}) : this.#store.compareAndSet(change, expected);
  }

  async list(...args: Parameters<StateStore['list']>): ReturnType<StateStore['list']> {
    return this.isDead ? new Promise(() => {}) : this.#store.list(...args);
  }
}
