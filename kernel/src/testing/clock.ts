import type { Clock, Timer } from '../host/base/ambient.js';

/** When a manual clock starts, unless told otherwise. A Thursday. */
const START = Date.UTC(2026, 0, 1);

interface Due {
  at: number;
  readonly run: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  readonly #start: number;
  #elapsed = 0;
  /** In the order in which they were set, which is also the order of those that are due at the same time. */
  readonly #timers = new Set<Due>();

  /** @param start what `now` says at first, in milliseconds since 1970. */
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

  /** How many timers wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves the time forward and runs every timer that falls due meanwhile, each at its own moment, the earliest first. Timers that these set
   * count too. What a timer sets off with promises happens after `advance` has returned.
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

  /** The earliest timer that is due by then. */
  #next(end: number): Due | undefined {
    let first: Due | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}
