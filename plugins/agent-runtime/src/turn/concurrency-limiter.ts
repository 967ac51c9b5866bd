import type { TurnError } from '@plugboard/kernel/contracts';

export interface ConcurrencyLimiterOptions {
  /** How many holders there may be at once. */
  readonly permits: number;
  /** How many may wait. A further one is rejected at once. */
  readonly queue: number;
  /** Makes the error for a rejected caller. */
  rejection(): TurnError;
}

/** A counting semaphore with a bounded queue, first in, first out. */
export class ConcurrencyLimiter {
  readonly #options: ConcurrencyLimiterOptions;
  readonly #waiting = new Set<() => void>();
  #held = 0;

  constructor(options: ConcurrencyLimiterOptions) {
    this.#options = options;
  }

  /**
   * Takes a permit, which the caller gives back with `release`. Returns `undefined` if one was
   * free.
   *
   * @throws the rejection if the queue is full; rejects with the signal's reason if it aborts
   *   first.
   */
  acquire(signal: AbortSignal): Promise<void> | undefined {
    if (this.#held < this.#options.permits) {
      this.#held++;
      return undefined;
    }
    if (this.#waiting.size >= this.#options.queue) throw this.#options.rejection();
    return this.#wait(signal);
  }

  /** Gives a permit back. The first in the queue gets it directly, so no newcomer can overtake. */
  release(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#held--;
  }

  #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leaveQueue = () => {
      this.#waiting.delete(grant);
      signal.removeEventListener('abort', onAbort);
    };
    const grant = () => {
      leaveQueue();
      resolve();
    };
    const onAbort = () => {
      leaveQueue();
      reject(signal.reason);
    };
    this.#waiting.add(grant);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return promise;
  }
}
