import { seeded } from '../../support/seeded.js';

/** Choices of one case: the same ones for the same seed and number. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number, index: number) {
    this.#next = seeded(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  }

  /** An integer from 0 up to, not including, `limit`. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  /**
   * A count of which most are small: each power of ten up to the limit is as likely, once in a
   * while.
   */
  count(limit: number): number {
    const share = this.chance(0.2) ? this.#next() : this.#next() ** 2 * 0.6;
    return Math.max(1, Math.floor(limit ** share));
  }
}
