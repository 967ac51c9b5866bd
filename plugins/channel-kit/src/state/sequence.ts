import type { Clock } from '@plugboard/kernel';

/**
 * Numbers messages and notices in their order, also over restarts: microseconds since the epoch,
 * in 16 digits.
 */
export class Sequence {
  readonly #clock: Clock;
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A number that was given out before the start: the clock may have been set back since. */
  seen(seq: string): void {
    this.#last = Math.max(this.#last, Number(seq));
  }

  next(): string {
    this.#last = Math.max(this.#last + 1, Math.floor(this.#clock.now()) * 1_000);
    return String(this.#last).padStart(16, '0');
  }
}
