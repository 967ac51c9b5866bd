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
  /** The most that was in use at once. */
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
 *    of the whole; from the second on, an owner may hold only as much as remains free. Without an
 *    owner there is no share.
 * 4. `release` gives back what was reserved, to the same owner.
 *
 * @public
 */
export class Budget {
  #options: BudgetOptions;
  readonly #held: Held = { amount: 0, inside: undefined };
  readonly #onRefused: (budget: Budget) => void;
  #used = 0;
  #peak = 0;
  #refused = 0;

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
    return { ...this.#options, used: this.#used, peak: this.#peak, refused: this.#refused };
  }

  /**
   * Takes an amount. Returns whether there was enough.
   *
   * @param options.small whether the amount is too small for the owner's share to matter: only the
   * limit counts.
   */
  reserve(owner: readonly string[], amount: number, { small = false }: { readonly small?: boolean } = {}): boolean {
    const free = this.#options.limit - this.#used - amount;
    if (free < 0 || (!small && this.#exceedsShare(owner, amount, free))) {
      this.#refused++;
      this.#onRefused(this);
      return false;
    }
    let held = this.#held;
    for (const name of owner) {
      held = heldInside(held, name);
      held.amount += amount;
    }
    this.#used += amount;
    this.#peak = Math.max(this.#peak, this.#used);
    return true;
  }

  /**
   * Records a change of what is in use without an owner and without a limit, for a cache that
   * evicts by itself.
   * @param amount negative if there is less.
   */
  record(amount: number): void {
    this.#used += amount;
    this.#peak = Math.max(this.#peak, this.#used);
  }

  #exceedsShare(owner: readonly string[], amount: number, free: number): boolean {
    let held: Held | undefined = this.#held;
    for (let level = 0; level < owner.length; level++) {
      held = held?.inside?.get(owner[level] as string);
      if ((held?.amount ?? 0) + amount > shareAt(level) * free) return true;
    }
    return false;
  }

  /** Gives back what was reserved. */
  release(owner: readonly string[], amount: number): void {
    this.#used -= amount;
    let outer = this.#held;
    for (const name of owner) {
      const held = heldInside(outer, name);
      held.amount -= amount;
      if (held.amount <= 0) outer.inside?.delete(name);
      outer = held;
    }
  }
}

/** What an owner holds, and what the owners inside it hold. */
interface Held {
  amount: number;
  inside: Map<string, Held> | undefined;
}

function heldInside(outer: Held, name: string): Held {
  outer.inside ??= new Map();
  const known = outer.inside.get(name);
  if (known) return known;
  const held: Held = { amount: 0, inside: undefined };
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
