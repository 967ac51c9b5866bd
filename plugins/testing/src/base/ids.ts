import type { IdSource } from '@plugboard/kernel';

/** Ids that count from 1, and fractions from a list. @experimental */
export class SequentialIds implements IdSource {
  #count = 0;
  readonly #fractions: readonly number[];
  #drawn = 0;

  /** @param fractions what `fraction` returns, in turn, starting over at the end. */
  constructor(fractions: readonly [number, ...number[]] = [0.5]) {
    this.#fractions = fractions;
  }

  base62(length: number): string {
    return this.#next(length);
  }

  hex(length: number): string {
    return this.#next(length);
  }

  fraction(): number {
    return this.#fractions[this.#drawn++ % this.#fractions.length] as number;
  }

  /** Decimal digits, which are valid in base62 and hexadecimal. */
  #next(length: number): string {
    this.#count += 1;
    return String(this.#count).padStart(length, '0').slice(-length);
  }
}
