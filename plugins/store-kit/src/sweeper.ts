import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Milliseconds until the next step when nothing is left to delete, and when there is more. */
const IDLE_INTERVAL = 10 * 60_000;
const STEP_INTERVAL = 50;

/** Deletes expired rows from time to time, in small steps until nothing is left. */
export class Sweeper {
  readonly #clock: Clock;
  readonly #step: () => Promise<boolean>;
  readonly #onFailure: (error: unknown) => void;
  #timer: Timer | undefined;
  /** Nothing was left after the last step: the timer is a long one. */
  #isIdle = false;
  /** Something was deleted during a step, which may have missed it. */
  #wasWoken = false;
  #isStopped = false;

  /** @param step deletes a little. Returns whether there may be more. */
  constructor(clock: Clock, step: () => Promise<boolean>, onFailure: (error: unknown) => void) {
    this.#clock = clock;
    this.#step = step;
    this.#onFailure = onFailure;
    this.#schedule(IDLE_INTERVAL);
  }

  /** Starts soon, because there is something to delete. */
  wake(): void {
    if (this.#isIdle) this.#schedule(STEP_INTERVAL);
    else this.#wasWoken = true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#isIdle = ms === IDLE_INTERVAL;
    this.#timer = this.#clock.after(ms, () => void this.#run());
  }

  async #run(): Promise<void> {
    this.#isIdle = false;
    this.#wasWoken = false;
    try {
      const hasMore = await this.#step();
      this.#schedule(hasMore || this.#wasWoken ? STEP_INTERVAL : IDLE_INTERVAL);
    } catch (error) {
      this.#onFailure(error);
      this.#schedule(IDLE_INTERVAL);
    }
  }
}
