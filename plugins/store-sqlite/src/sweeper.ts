import type { Clock, Timer } from '@plugboard/kernel';

/** How long sweeping rests when there is nothing left to delete, and between two steps while there is. */
const REST = 10 * 60_000;
const PAUSE = 50;

/** Now and then deletes a little of what has expired, and goes on in small steps as long as there is more. */
export class Sweeper {
  readonly #clock: Clock;
  readonly #step: () => Promise<boolean>;
  readonly #onFailure: (error: unknown) => void;
  #timer: Timer | undefined;
  /** There is nothing left, as far as is known: the timer is one of the long ones. */
  #isResting = false;
  /** Something was deleted while a step was on its way, which may not have seen it. */
  #isCalled = false;
  #isStopped = false;

  /** @param step deletes a little, and says whether there may be more. */
  constructor(clock: Clock, step: () => Promise<boolean>, onFailure: (error: unknown) => void) {
    this.#clock = clock;
    this.#step = step;
    this.#onFailure = onFailure;
    this.#sleep(REST);
  }

  /** There is something to delete now. */
  wake(): void {
    if (this.#isResting) this.#sleep(PAUSE);
    else this.#isCalled = true;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #sleep(ms: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#isResting = ms === REST;
    this.#timer = this.#clock.after(ms, () => void this.#work());
  }

  async #work(): Promise<void> {
    this.#isResting = false;
    this.#isCalled = false;
    try {
      const hasMore = await this.#step();
      this.#sleep(hasMore || this.#isCalled ? PAUSE : REST);
    } catch (error) {
      this.#onFailure(error);
      this.#sleep(REST);
    }
  }
}
