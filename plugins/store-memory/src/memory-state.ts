import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';

/** The state of plugins. Their limits bound it: nothing is evicted, and no project pays for it. */
export class MemoryState implements StateStore {
  /** Values as JSON, by entry and key. */
  readonly #entries = new Map<string, Map<string, string>>();

  async get(entry: string, key: string): Promise<string | undefined> {
    return this.#entries.get(entry)?.get(key);
  }

  async change(changes: readonly StateChange[]): Promise<void> {
    this.assertFits(changes);
    this.apply(changes);
  }

  async compareAndSet(change: StateChange, expected: string | undefined): Promise<boolean> {
    if (this.#entries.get(change.entry)?.get(change.key) !== expected) return false;
    await this.change([change]);
    return true;
  }

  async list(
    entry: string,
    { prefix, after, limit }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    return [...(this.#entries.get(entry) ?? [])]
      .filter(([key]) => key.startsWith(prefix) && (after === undefined || byBytes(key, after) > 0))
      .toSorted(([a], [b]) => byBytes(a, b))
      .slice(0, limit)
      .map(([key, text]) => ({ key, text }));
  }

  /** @throws StateFull if an entry would have too many keys on the way. */
  assertFits(changes: readonly StateChange[]): void {
    for (const [entry, own] of Map.groupBy(changes, (change) => change.entry)) {
      const stored = this.#entries.get(entry);
      /** Whether the entry would have the keys that change. */
      const has = new Map<string, boolean>();
      let size = stored?.size ?? 0;
      for (const { key, text } of own) {
        const before = has.get(key) ?? stored?.has(key) ?? false;
        has.set(key, text !== undefined);
        size += Number(text !== undefined) - Number(before);
        if (size > StateFull.LIMIT) throw new StateFull(entry);
      }
    }
  }

  /** Applies changes that fit. */
  apply(changes: readonly StateChange[]): void {
    for (const { entry, key, text } of changes) {
      const values = this.#entries.get(entry) ?? new Map<string, string>();
      this.#entries.set(entry, values);
      if (text === undefined) values.delete(key);
      else values.set(key, text);
    }
  }

  clear(): void {
    this.#entries.clear();
  }
}

/** Compares keys by their bytes. The order of JavaScript's strings is another one. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
