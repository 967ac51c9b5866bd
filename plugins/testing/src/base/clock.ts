import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Default start of a manual clock. A Thursday. */
const START = Date.UTC(2026, 0, 1);

interface Due {
  at: number;
  readonly run: () => void;
}

/** A clock that moves only when a test calls `advance`. @experimental */
export class ManualClock implements Clock {
  readonly #start: number;
  #elapsed = 0;
  /** In the order in which they were set. Timers due at the same time run in this order. */
  readonly #timers = new Set<Due>();

  /** @param start the first value of `now`, in milliseconds since 1970. */
  constructor(start: number = START) {
    this.#start = start;
  }

  now(): number {
    return this.#start + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, run: () => void): Timer {
    const timer: Due = { at: this.#elapsed + ms, run };
    this.#timers.add(timer);
    return {
      cancel: () => void this.#timers.delete(timer),
      refresh: () => {
        timer.at = this.#elapsed + ms;
        this.#timers.delete(timer);
        this.#timers.add(timer);
      },
    };
  }

  /** Number of timers that are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves the time forward and runs every timer that becomes due, earliest first, including timers
   * set by these. Promise callbacks that a timer causes run after `advance` has returned.
   *
   * @param ms milliseconds.
   */
  advance(ms: number): void {
    const end = this.#elapsed + ms;
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#timers.delete(next);
      this.#elapsed = Math.max(this.#elapsed, next.at);
      next.run();
    }
    this.#elapsed = end;
  }

  /** The earliest timer due by `end`. */
  #next(end: number): Due | undefined {
    let first: Due | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}
