import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** The longest delay of one timer. Node's own overflow after 24 days and then fire at once. */
const MAX_DELAY = 24 * 60 * 60_000;

export interface Entry<V> {
  readonly value: V;
  readonly bytes: number;
  /** The project it belongs to. */
  readonly owner: string;
  /** Time of the last `set`, on the clock's monotonic scale. */
  readonly usedAt: number;
}

/**
 * A map whose entries expire after a time without use, and know their size. Entries are ordered by
 * their last use. A timer waits for the oldest one, so expired entries are released even without
 * calls.
 */
export class ExpiringMap<V> {
  /** In the order of use: `set` moves an entry to the end. */
  readonly #entries = new Map<string, Entry<V>>();
  /** The keys of each owner, in the same order, and their total size. */
  readonly #owners = new Map<string, { readonly keys: Set<string>; bytes: number }>();
  readonly #ttl: number;
  readonly #clock: Clock;
  readonly #onExpired: (entry: Entry<V>) => void;
  /**
   * Keys of entries that are in use, with the number of their users. They neither expire nor count
   * as oldest.
   */
  readonly #pins = new Map<string, number>();
  #bytes = 0;
  #timer: Timer | undefined;

  /** @param ttl milliseconds from an entry's last use to its expiry. */
  constructor(ttl: number, clock: Clock, onExpired: (entry: Entry<V>) => void = () => {}) {
    this.#ttl = ttl;
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Total size of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns an entry. Does not count as use. */
  get(key: string): Entry<V> | undefined {
    this.expire();
    return this.#entries.get(key);
  }

  /** The owners with the number and total size of their entries. */
  *owners(): Iterable<readonly [owner: string, size: number, bytes: number]> {
    for (const [owner, { keys, bytes }] of this.#owners) yield [owner, keys.size, bytes];
  }

  /** Adds or replaces an entry. Counts as use. */
  set(key: string, value: V, bytes: number, owner: string): void {
    this.#remove(key);
    this.#entries.set(key, { value, bytes, owner, usedAt: this.#clock.monotonic() });
    this.#bytes += bytes;
    const owned = this.#owners.get(owner) ?? { keys: new Set(), bytes: 0 };
    this.#owners.set(owner, owned);
    owned.keys.add(key);
    owned.bytes += bytes;
    this.#schedule();
  }

  /** Changes the size of an entry. Does not count as use. */
  resize(key: string, bytes: number): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.set(key, { ...entry, bytes });
    this.#bytes += bytes - entry.bytes;
    const owned = this.#owners.get(entry.owner);
    if (owned) owned.bytes += bytes - entry.bytes;
  }

  delete(key: string): Entry<V> | undefined {
    this.expire();
    return this.#remove(key);
  }

  /** Keeps an entry, present or future, until `unpin` was called as often as `pin`. */
  pin(key: string): void {
    this.#pins.set(key, (this.#pins.get(key) ?? 0) + 1);
  }

  unpin(key: string): void {
    const pins = this.#pins.get(key) ?? 0;
    if (pins > 1) this.#pins.set(key, pins - 1);
    else this.#pins.delete(key);
  }

  /** Returns the owner's least recently used entry that is not pinned. */
  oldest(owner: string): Entry<V> | undefined {
    const key = this.#oldestKey(owner);
    return key === undefined ? undefined : this.#entries.get(key);
  }

  /** Removes the owner's least recently used entry that is not pinned. */
  shift(owner: string): Entry<V> | undefined {
    const key = this.#oldestKey(owner);
    return key === undefined ? undefined : this.#remove(key);
  }

  /** Removes all entries without calling `onExpired`. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#entries.clear();
    this.#owners.clear();
    this.#pins.clear();
    this.#bytes = 0;
  }

  #oldestKey(owner: string): string | undefined {
    for (const key of this.#owners.get(owner)?.keys ?? []) if (!this.#pins.has(key)) return key;
    return undefined;
  }

  #remove(key: string): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    const owned = this.#owners.get(entry.owner);
    if (owned) {
      owned.keys.delete(key);
      owned.bytes -= entry.bytes;
      if (owned.keys.size === 0) this.#owners.delete(entry.owner);
    }
    return entry;
  }

  /** Removes what has expired, for readers that do not `get`. */
  expire(): void {
    const latest = this.#clock.monotonic() - this.#ttl;
    for (const [key, entry] of this.#entries) {
      if (entry.usedAt > latest) return;
      this.#remove(key);
      if (this.#pins.has(key)) this.set(key, entry.value, entry.bytes, entry.owner);
      else this.#onExpired(entry);
    }
  }

  /**
   * A running timer is never late: the oldest entry can only become younger. If it fires early, it
   * is scheduled again.
   */
  #schedule(): void {
    const { value: first } = this.#entries.values().next();
    if (this.#timer || !first) return;
    const left = first.usedAt + this.#ttl - this.#clock.monotonic();
    this.#timer = this.#clock.after(Math.min(left, MAX_DELAY), () => {
      this.#timer = undefined;
      this.expire();
      this.#schedule();
    });
  }
}
