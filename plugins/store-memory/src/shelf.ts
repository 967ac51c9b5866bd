import type { Clock, Timer } from '@plugboard/kernel';

/** The longest wait of one timer: Node's own overflow after 24 days and then fire at once. */
const LONGEST_WAIT = 24 * 60 * 60_000;

export interface Item<V> {
  readonly value: V;
  readonly bytes: number;
  /** On the clock's monotonic scale. */
  readonly usedAt: number;
}

/**
 * Values by key, each forgotten when it has not been used for a while. Time runs here also when nobody calls: a timer waits for the oldest
 * value, so that what has expired is not kept until somebody comes.
 */
export class Shelf<V> {
  /** In the order of their last use, because what is used is taken out and put in again. */
  readonly #items = new Map<string, Item<V>>();
  readonly #ttl: number;
  readonly #clock: Clock;
  readonly #onExpired: (item: Item<V>) => void;
  #bytes = 0;
  #timer: Timer | undefined;

  /** @param ttl milliseconds after its last use that a value is kept. */
  constructor(ttl: number, clock: Clock, onExpired: (item: Item<V>) => void) {
    this.#ttl = ttl;
    this.#clock = clock;
    this.#onExpired = onExpired;
  }

  get size(): number {
    return this.#items.size;
  }

  /** Of all values together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Looks, which is no use of it. */
  get(key: string): Item<V> | undefined {
    this.#forgetExpired();
    return this.#items.get(key);
  }

  /** Puts a value in, in the place of another under the same key: this is its first use. */
  put(key: string, value: V, bytes: number): void {
    this.#remove(key);
    this.#items.set(key, { value, bytes, usedAt: this.#clock.monotonic() });
    this.#bytes += bytes;
    this.#wait();
  }

  /** A value has another size now: that is no use of it. */
  resize(key: string, bytes: number): void {
    const item = this.#items.get(key);
    if (!item) return;
    this.#items.set(key, { ...item, bytes });
    this.#bytes += bytes - item.bytes;
  }

  /** Takes a value out, where it is there. */
  take(key: string): Item<V> | undefined {
    this.#forgetExpired();
    return this.#remove(key);
  }

  /** All of them. */
  *values(): Iterable<V> {
    this.#forgetExpired();
    for (const { value } of this.#items.values()) yield value;
  }

  /** The value that was not used for the longest time. */
  oldest(): Item<V> | undefined {
    return this.#items.values().next().value;
  }

  /** Takes the oldest value out. */
  shift(): Item<V> | undefined {
    const { value: key } = this.#items.keys().next();
    return key === undefined ? undefined : this.#remove(key);
  }

  /** Forgets everything, without a word. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#items.clear();
    this.#bytes = 0;
  }

  #remove(key: string): Item<V> | undefined {
    const item = this.#items.get(key);
    if (item === undefined) return undefined;
    this.#items.delete(key);
    this.#bytes -= item.bytes;
    return item;
  }

  #forgetExpired(): void {
    const latest = this.#clock.monotonic() - this.#ttl;
    for (const [key, item] of this.#items) {
      if (item.usedAt > latest) return;
      this.#remove(key);
      this.#onExpired(item);
    }
  }

  /** A timer that runs already comes at the right time or too early, for the oldest value only ever gets younger; then it waits again. */
  #wait(): void {
    const oldest = this.oldest();
    if (this.#timer || !oldest) return;
    const left = oldest.usedAt + this.#ttl - this.#clock.monotonic();
    this.#timer = this.#clock.after(Math.min(left, LONGEST_WAIT), () => {
      this.#timer = undefined;
      this.#forgetExpired();
      this.#wait();
    });
  }
}
