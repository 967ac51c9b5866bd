import type { Clock } from '@plugboard/kernel';

/** What is remembered at most. Beyond it, nothing new is allowed until something is forgotten. */
const MAX_KEYS = 1_000;

/** Allows something once in a while for each key. */
export class Throttle {
  readonly #clock: Clock;
  readonly #ms: number;
  /** When each key was allowed last, the earliest first. */
  readonly #allowed = new Map<string, number>();

  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  allows(key: string): boolean {
    const now = this.#clock.monotonic();
    for (const [known, at] of this.#allowed) {
      if (now - at < this.#ms) break;
      this.#allowed.delete(known);
    }
    if (this.#allowed.has(key) || this.#allowed.size >= MAX_KEYS) return false;
    this.#allowed.set(key, now);
    return true;
  }
}
