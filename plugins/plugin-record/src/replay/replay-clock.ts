import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Clock, IdSource } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { playing } from './replayer.js';

/** Longer than a model connection that failed is left alone: each turn finds all of them well. */
const PAUSE = 60_000;

/** The longest pause before a retry, in milliseconds. */
const MAX_RETRY_PAUSE = 10_000;

/** A clock that shows each replayed turn the time at which it was recorded. */
export class ReplayClock implements Clock {
  #skipped = 0;

  now(): number {
    return playing.getStore()?.recording.turn.at ?? Date.now();
  }

  monotonic(): number {
    return performance.now() + this.#skipped;
  }

  /** A pause before a retry keeps the process alive: nothing else does. */
  after(ms: number, run: () => void): Timer {
    const timeout = setTimeout(run, Math.min(ms, 2 ** 31 - 1));
    if (ms > MAX_RETRY_PAUSE) timeout.unref();
    return { cancel: () => clearTimeout(timeout), refresh: () => void timeout.refresh() };
  }

  /** Lets what a failed model connection has to wait for pass. */
  skip(): void {
    this.#skipped += PAUSE;
  }
}

/** Ids of replays. No retry waits by chance. */
export class ReplayIds implements IdSource {
  base62(length: number): string {
    return this.hex(length);
  }

  hex(length: number): string {
    return randomBytes(Math.ceil(length / 2))
      .toString('hex')
      .slice(0, length);
  }

  fraction(): number {
    return 0;
  }
}
