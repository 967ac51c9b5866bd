import type { Clock, Timer } from '@plugboard/kernel';

/** The longest delay of one timer. Node's own overflow after 24 days and then fire at once. */
const LONGEST_DELAY = 24 * 60 * 60_000;

export interface Entry<V> {
  readonly value: V;
  readonly bytes: number;
  /** Time of the last `set`, on the clock's monotonic scale. */
  readonly usedAt: number;
}

/**
 * A map whose entries expire after a time without use, and know their size. Entries are ordered by their last use. A timer waits for
 * the oldest one, so expired entries are released even if nobody calls.
 */
export class ExpiringMap<V> {
  /** In the order of use: `set` moves an entry to the end. */
  readonly #entries = new Map<string, Entry<V>>();
  readonly #ttl: number;
  readonly #clock: Clock;
  readonly #onExpired: (entry: Entry<V>) => void;
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
    this.#expire();
    return this.#entries.get(key);
  }

  /** Adds or replaces an entry. Counts as use. */
  set(key: string, value: V, bytes: number): void {
    this.#remove(key);
    this.#entries.set(key, { value, bytes, usedAt: this.#clock.monotonic() });
    this.#bytes += bytes;
    this.#schedule();
  }

  /** Changes the size of an entry. Does not count as use. */
  resize(key: string, bytes: number): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.set(key, { ...entry, bytes });
    this.#bytes += bytes - entry.bytes;
  }

  delete(key: string): Entry<V> | undefined {
    this.#expire();
    return this.#remove(key);
  }

  *values(): Iterable<V> {
    this.#expire();
    for (const { value } of this.#entries.values()) yield value;
  }

  /** Returns the least recently used entry. */
  oldest(): Entry<V> | undefined {
    return this.#entries.values().next().value;
  }

  /** Removes the least recently used entry. */
  shift(): Entry<V> | undefined {
    const { value: key } = this.#entries.keys().next();
    return key === undefined ? undefined : this.#remove(key);
  }

  /** Removes all entries without calling `onExpired`. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#entries.clear();
    this.#bytes = 0;
  }

  #remove(key: string): Entry<V> | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    return entry;
  }

  #expire(): void {
    const latest = this.#clock.monotonic() - this.#ttl;
    for (const [key, entry] of this.#entries) {
      if (entry.usedAt > latest) return;
      this.#remove(key);
      this.#onExpired(entry);
    }
  }

  /** A running timer is never late: the oldest entry can only become younger. If it fires early, it is scheduled again. */
  #schedule(): void {
    const oldest = this.oldest();
    if (this.#timer || !oldest) return;
    const left = oldest.usedAt + this.#ttl - this.#clock.monotonic();
    this.#timer = this.#clock.after(Math.min(left, LONGEST_DELAY), () => {
      this.#timer = undefined;
      this.#expire();
      this.#schedule();
    });
  }
}
