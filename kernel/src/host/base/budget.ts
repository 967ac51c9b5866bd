import { getHeapStatistics } from 'node:v8';

/**
 * What an owner may hold, as a multiple of what it leaves free, by its level. A single owner gets
 * three quarters of the budget, and the next one three quarters of the rest. Owners inside another
 * one get half, so that one of them cannot use up the share of all.
 */
const SHARES = [3, 1] as const;

/** A budget to create: what it bounds, and the option that sets its limit. @public */
export interface BudgetOptions {
  /** What the budget is for: `uploads in progress`. */
  readonly name: string;
  readonly unit: string;
  readonly limit: number;
  /** The option that sets the limit, as messages name it: `plugins.uploads.memory`. */
  readonly setting: string;
}

/** The state of a budget, for operators. @public */
export interface BudgetReport extends BudgetOptions {
  readonly used: number;
  /** Held by caches, which give it up when it is needed. */
  readonly cached: number;
  /** The most that was in use at once, caches included. */
  readonly peak: number;
  /** How often something was refused. */
  readonly refused: number;
}

/**
 * A limited resource of the process, such as memory, shared fairly by its owners.
 *
 * 1. `reserve` takes an amount for an owner. It is refused beyond the limit, or beyond the owner's
 *    share.
 * 2. The share depends on what is left: an owner may hold three times what remains free. The first
 *    one cannot take everything, and a newcomer always finds something.
 * 3. An owner is a path, from the outside in: `['building 2', 'room 4']`. Each level has its share
 *    of the whole; from the second on, an owner may hold only as much as remains free. An
 *    amount without an owner has no share. Small amounts of an owner have a share of their own,
 *    beside what it holds otherwise.
 * 4. `release` gives back what was reserved, to the same owner.
 * 5. `wait` takes an amount as soon as there is enough.
 * 6. What a cache holds (`cache`) never stands in the way of a reservation: the cache is asked to
 *    evict it.
 *
 * @public
 */
export class Budget {
  #options: BudgetOptions;
  readonly #held: Held = { amount: 0, small: 0, inside: undefined };
  readonly #onRefused: (budget: Budget) => void;
  #used = 0;
  #cached = 0;
  #peak = 0;
  #refused = 0;
  /** Attempts of those that wait, the earliest first. They return whether they succeeded. */
  readonly #waiting = new Set<() => boolean>();
  #evict: (amount: number) => void = () => {};

  /** @param onRefused called for every refusal. */
  constructor(options: BudgetOptions, onRefused: (budget: Budget) => void = () => {}) {
    this.#options = options;
    this.#onRefused = onRefused;
  }

  get setting(): string {
    return this.#options.setting;
  }

  get limit(): number {
    return this.#options.limit;
  }

  /** Changes the limit. What is in use beyond it is not taken back. */
  resize(limit: number): void {
    this.#options = { ...this.#options, limit };
    this.#shrinkCache();
    this.#grantWaiting();
  }

  /**
   * The most that an owner with this many levels can get when nothing else is in use.
   */
  share(levels: number): number {
    const share = shareAt(levels - 1);
    return Math.floor((this.#options.limit * share) / (share + 1));
  }

  get used(): number {
    return this.#used;
  }

  get report(): BudgetReport {
    return { ...this.#options, used: this.#used, cached: this.#cached, peak: this.#peak, refused: this.#refused };
  }

  /**
   * Takes an amount. Returns whether there was enough.
   *
   * @param options.small whether only the small amounts of the owner count against its share. What
   * is taken so must be released so.
   */
  reserve(owner: readonly string[], amount: number, { small = false }: { readonly small?: boolean } = {}): boolean {
    if (this.#take(owner, amount, small)) return true;
    this.#refuse();
    return false;
  }

  /**
   * Takes an amount as soon as there is enough. Those that wait are tried in order, and do not stop
   * each other.
   *
   * @throws the signal's reason if it aborts first.
   */
  async wait(owner: readonly string[], amount: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#take(owner, amount, false)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const attempt = () => {
      const isGranted = this.#take(owner, amount, false);
      if (isGranted) resolve();
      return isGranted;
    };
    const onAbort = () => reject(signal.reason);
    this.#waiting.add(attempt);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } catch (error) {
      this.#refuse();
      throw error;
    } finally {
      this.#waiting.delete(attempt);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Records what a cache holds more, or less. It may be asked to evict some of it at once, or when
   * a reservation needs it.
   *
   * @param change negative if there is less.
   */
  cache(change: number): void {
    this.#cached += change;
    this.#shrinkCache();
    this.#peak = Math.max(this.#peak, this.#used + this.#cached);
  }

  /**
   * @param evict called with the amount that the cache must give up, which it records (`cache`).
   */
  onShortage(evict: (amount: number) => void): void {
    this.#evict = evict;
  }

  #take(owner: readonly string[], amount: number, small: boolean): boolean {
    const free = this.#options.limit - this.#used - amount;
    if (free < 0 || this.#exceedsShare(owner, amount, free, small)) return false;
    let held = this.#held;
    for (const name of owner) {
      held = heldInside(held, name);
      held.amount += amount;
      if (small) held.small += amount;
    }
    this.#used += amount;
    this.#shrinkCache();
    this.#peak = Math.max(this.#peak, this.#used + this.#cached);
    return true;
  }

  #refuse(): void {
    this.#refused++;
    this.#onRefused(this);
  }

  #shrinkCache(): void {
    const excess = Math.min(this.#cached, this.#used + this.#cached - this.#options.limit);
    if (excess > 0) this.#evict(excess);
  }

  #grantWaiting(): void {
    for (const attempt of this.#waiting) if (attempt()) this.#waiting.delete(attempt);
  }

  #exceedsShare(owner: readonly string[], amount: number, free: number, small: boolean): boolean {
    let held: Held | undefined = this.#held;
    for (let level = 0; level < owner.length; level++) {
      held = held?.inside?.get(owner[level] as string);
      const before = (small ? held?.small : held?.amount) ?? 0;
      if (before + amount > shareAt(level) * free) return true;
    }
    return false;
  }

  /** Gives back what was reserved. @param options.small whether it was reserved as small. */
  release(owner: readonly string[], amount: number, { small = false }: { readonly small?: boolean } = {}): void {
    this.#used -= amount;
    let outer = this.#held;
    for (const name of owner) {
      const held = heldInside(outer, name);
      held.amount -= amount;
      if (small) held.small -= amount;
      if (held.amount <= 0) outer.inside?.delete(name);
      outer = held;
    }
    if (this.#waiting.size > 0) this.#grantWaiting();
  }
}

/** What an owner holds, and what the owners inside it hold. */
interface Held {
  amount: number;
  /** How much of it was taken as small. */
  small: number;
  inside: Map<string, Held> | undefined;
}

function heldInside(outer: Held, name: string): Held {
  outer.inside ??= new Map();
  const known = outer.inside.get(name);
  if (known) return known;
  const held: Held = { amount: 0, small: 0, inside: undefined };
  outer.inside.set(name, held);
  return held;
}

function shareAt(level: number): number {
  return level === 0 ? SHARES[0] : SHARES[1];
}

/**
 * Bytes that the heap of this process may grow to. Limits of memory are fractions of it.
 *
 * @public
 */
export function heapLimit(): number {
  return getHeapStatistics().heap_size_limit;
}
