import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import { OrderedList } from './ordered-list.js';

/** What one entry keeps. */
interface EntryState {
  /** As JSON, by key. */
  readonly values: Map<string, string>;
  readonly keys: OrderedList<string>;
}

/** The state of plugins. Their limits bound it: nothing is evicted, and no project pays for it. */
export class MemoryState implements StateStore {
  readonly #entries = new Map<string, EntryState>();

  async get(entry: string, key: string): Promise<string | undefined> {
    return this.#entries.get(entry)?.values.get(key);
  }

  async change(changes: readonly StateChange[]): Promise<void> {
    this.assertFits(changes);
    this.apply(changes);
  }

  async compareAndSet(change: StateChange, expected: string | undefined): Promise<boolean> {
    if (this.#entries.get(change.entry)?.values.get(change.key) !== expected) return false;
    await this.change([change]);
    return true;
  }

  async list(
    entry: string,
    { prefix, after, limit = Number.POSITIVE_INFINITY }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    const { keys, values } = this.#entries.get(entry) ?? newEntry();
    const isBefore = (key: string) => byBytes(key, prefix) < 0 || (after !== undefined && byBytes(key, after) <= 0);
    const found: { readonly key: string; readonly text: string }[] = [];
    for (const key of keys.ascending(isBefore)) {
      if (!key.startsWith(prefix) || found.length >= limit) break;
      found.push({ key, text: values.get(key) ?? '' });
    }
    return found;
  }

  /** @throws StateFull if an entry would have too many keys on the way. */
  assertFits(changes: readonly StateChange[]): void {
    for (const [entry, own] of Map.groupBy(changes, (change) => change.entry)) {
      const stored = this.#entries.get(entry)?.values;
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
      const { keys, values } = this.#entries.get(entry) ?? newEntry();
      this.#entries.set(entry, { keys, values });
      if (text === undefined) {
        if (values.delete(key)) keys.delete(key);
      } else {
        if (!values.has(key)) keys.add(key);
        values.set(key, text);
      }
    }
  }

  clear(): void {
    this.#entries.clear();
  }
}

function newEntry(): EntryState {
  return { values: new Map(), keys: new OrderedList(byBytes) };
}

/** Compares keys by their bytes. The order of JavaScript's strings is another one. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
