import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';

/** Keeps the state of plugins in memory. */
export class TestState implements StateStore {
  /** Keys and values by entry. */
  #entries = new Map<string, Map<string, string>>();

  async get(entry: string, key: string): Promise<string | undefined> {
    return this.#entries.get(entry)?.get(key);
  }

  async change(changes: readonly StateChange[]): Promise<void> {
    this.apply(changes);
  }

  /** Applies changes at once. @throws StateFull, and changes nothing. */
  apply(changes: readonly StateChange[]): void {
    const entries = new Map([...this.#entries].map(([entry, values]) => [entry, new Map(values)]));
    for (const { entry, key, text } of changes) {
      const values = entries.get(entry) ?? new Map<string, string>();
      if (text === undefined) values.delete(key);
      else values.set(key, text);
      if (values.size > StateFull.LIMIT) throw new StateFull(entry);
      entries.set(entry, values);
    }
    this.#entries = entries;
  }

  async list(
    entry: string,
    { prefix, after = '', limit }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    return [...(this.#entries.get(entry) ?? [])]
      .filter(([key]) => key.startsWith(prefix) && byBytes(key, after) > 0)
      .toSorted(([a], [b]) => byBytes(a, b))
      .slice(0, limit)
      .map(([key, text]) => ({ key, text }));
  }
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
