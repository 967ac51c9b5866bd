import type { Clock, TurnError } from '@plugboard/kernel';

export interface TurnstileRules {
  /** How many may be inside at once. */
  readonly places: number;
  /** How many may wait; a further one is refused at once. */
  readonly queue: number;
  /** Milliseconds that one may wait; for ever where it is absent. */
  readonly patience?: number;
  /** What the one who is refused is told. */
  refusal(): TurnError;
}

/** Lets so many in at once, and the others in the order of their coming. */
export class Turnstile {
  readonly #rules: TurnstileRules;
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(rules: TurnstileRules, clock: Clock) {
    this.#rules = rules;
    this.#clock = clock;
  }

  /** Nobody is inside, and nobody waits. */
  get deserted(): boolean {
    return this.#inside === 0;
  }

  /**
   * Waits for a place. Whoever got one gives it back with `leave`. Undefined: there was one at once.
   *
   * @throws the refusal where the queue is full or the wait was too long, the signal's reason where that is aborted before.
   */
  enter(signal: AbortSignal): Promise<void> | undefined {
    if (this.#inside < this.#rules.places) {
      this.#inside++;
      return undefined;
    }
    if (this.#waiting.size >= this.#rules.queue) throw this.#rules.refusal();
    return this.#wait(signal);
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#inside--;
  }

  /** Whoever leaves hands the place on: nobody who comes meanwhile can slip in between. */
  #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = () => {
      this.#waiting.delete(enter);
      signal.removeEventListener('abort', giveUp);
      timer?.cancel();
    };
    const enter = () => {
      stop();
      resolve();
    };
    const giveUp = () => {
      stop();
      reject(signal.reason);
    };
    const { patience } = this.#rules;
    const timer =
      patience === undefined
        ? undefined
        : this.#clock.after(patience, () => {
            stop();
            reject(this.#rules.refusal());
          });
    this.#waiting.add(enter);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    return promise;
  }
}
