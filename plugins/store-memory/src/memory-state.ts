import { type Clock, type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import { OrderedList } from './ordered-list.js';

/** What a key costs besides its own bytes and those of its value. */
const KEY_OVERHEAD = 100;
/** Expired keys that one change deletes, at most. */
const SWEEP_KEYS = 100;

/** What may be stored. By default as many keys as the contract says, of any size. */
export interface StateLimits {
  /** Keys of one entry. */
  readonly maxKeys?: number;
  /** Bytes of all entries. */
  readonly maxBytes?: number;
}

/** What one entry keeps. */
interface EntryState {
  readonly values: Map<string, Value>;
  readonly keys: OrderedList<string>;
}

interface Value {
  /** JSON. */
  readonly text: string;
  readonly expiry: Expiry | undefined;
}

/** When a key expires, on the clock's monotonic scale. */
interface Expiry {
  readonly at: number;
  /** Orders keys that expire at the same time. */
  readonly sequence: number;
  readonly entry: string;
  readonly key: string;
}

/** The state of plugins. Their limits bound it: nothing is evicted, and no project pays for it. */
export class MemoryState implements StateStore {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  readonly #entries = new Map<string, EntryState>();
  #expiries = newExpiries();
  #bytes = 0;
  #sequence = 0;

  constructor(clock: Clock, { maxKeys = StateFull.LIMIT, maxBytes = Number.POSITIVE_INFINITY }: StateLimits = {}) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
  }

  async get(entry: string, key: string): Promise<string | undefined> {
    return this.#value(entry, key)?.text;
  }

  async change(changes: readonly StateChange[]): Promise<boolean> {
    if (this.conflict(changes)) return false;
    this.assertFits(changes);
    this.apply(changes);
    return true;
  }

  async list(
    entry: string,
    { prefix, after, limit = Number.POSITIVE_INFINITY }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    const { keys } = this.#entries.get(entry) ?? newEntry();
    const isBefore = (key: string) => byBytes(key, prefix) < 0 || (after !== undefined && byBytes(key, after) <= 0);
    const found: { readonly key: string; readonly text: string }[] = [];
    for (const key of keys.ascending(isBefore)) {
      if (!key.startsWith(prefix) || found.length >= limit) break;
      const text = this.#value(entry, key)?.text;
      if (text !== undefined) found.push({ key, text });
    }
    return found;
  }

  /** The first change that expects another value than its key has. */
  conflict(changes: readonly StateChange[]): StateChange | undefined {
    return changes.find(
      ({ entry, key, expected }) => expected !== undefined && expected !== (this.#value(entry, key)?.text ?? null),
    );
  }

  /**
   * Makes room by what has expired.
   * @throws StateFull if an entry would have too many keys, or all would take too many bytes.
   */
  assertFits(changes: readonly StateChange[]): void {
    this.#sweep(SWEEP_KEYS);
    const full = this.#excess(changes) && this.#sweep(Number.POSITIVE_INFINITY) && this.#excess(changes);
    if (full) throw full;
  }

  /** Applies changes that fit. */
  apply(changes: readonly StateChange[]): void {
    for (const { entry, key, text, expiresIn } of changes) {
      this.#delete(entry, key);
      if (text === undefined) continue;
      const { keys, values } = this.#entries.get(entry) ?? newEntry();
      this.#entries.set(entry, { keys, values });
      const expiry = expiresIn === undefined ? undefined : this.#expiry(entry, key, expiresIn);
      if (expiry) this.#expiries.add(expiry);
      keys.add(key);
      values.set(key, { text, expiry });
      this.#bytes += sizeOf(key, text);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#expiries = newExpiries();
    this.#bytes = 0;
  }

  #value(entry: string, key: string): Value | undefined {
    const value = this.#entries.get(entry)?.values.get(key);
    return value?.expiry && value.expiry.at <= this.#clock.monotonic() ? undefined : value;
  }

  #expiry(entry: string, key: string, expiresIn: number): Expiry {
    return { at: this.#clock.monotonic() + expiresIn, sequence: this.#sequence++, entry, key };
  }

  /** Which limit the changes would exceed, with the expired keys that are still there. */
  #excess(changes: readonly StateChange[]): StateFull | undefined {
    let bytes = this.#bytes;
    for (const [entry, own] of Map.groupBy(changes, (change) => change.entry)) {
      const stored = this.#entries.get(entry)?.values;
      let size = stored?.size ?? 0;
      for (const [key, text] of new Map(own.map((change) => [change.key, change.text]))) {
        const before = stored?.get(key);
        size += Number(text !== undefined) - Number(before !== undefined);
        bytes += sizeOf(key, text) - sizeOf(key, before?.text);
      }
      if (size > this.#maxKeys) return new StateFull(entry);
    }
    if (bytes <= this.#maxBytes) return undefined;
    const limit = `all entries would keep ${bytes} bytes in memory, and ${this.#maxBytes} is the limit`;
    return new StateFull(changes[0]?.entry ?? '', `${limit}; raise maxStateBytes or use a store on disk`);
  }

  /** Deletes expired keys, the earliest first. @returns true. */
  #sweep(most: number): true {
    const now = this.#clock.monotonic();
    for (let left = most; left > 0; left--) {
      const { first } = this.#expiries;
      if (first === undefined || first.at > now) break;
      this.#delete(first.entry, first.key);
    }
    return true;
  }

  #delete(entry: string, key: string): void {
    const { keys, values } = this.#entries.get(entry) ?? newEntry();
    const value = values.get(key);
    if (value === undefined) return;
    values.delete(key);
    keys.delete(key);
    if (value.expiry) this.#expiries.delete(value.expiry);
    this.#bytes -= sizeOf(key, value.text);
    if (values.size === 0) this.#entries.delete(entry);
  }
}

function newExpiries(): OrderedList<Expiry> {
  return new OrderedList((a, b) => a.at - b.at || a.sequence - b.sequence);
}

function newEntry(): EntryState {
  return { values: new Map(), keys: new OrderedList(byBytes) };
}

function sizeOf(key: string, text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(key) + Buffer.byteLength(text) + KEY_OVERHEAD;
}

/** Compares keys by their bytes in UTF-8. By its units, a surrogate pair would be before U+E000. */
function byBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (x !== y) return inOrder(x) - inOrder(y);
  }
  return a.length - b.length;
}

/** Puts the units of surrogate pairs after all others. */
function inOrder(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
