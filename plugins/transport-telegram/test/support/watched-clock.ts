import { ManualClock } from '@plugboard/testing';

type Timer = ReturnType<ManualClock['after']>;

/** A manual clock that says which waits are under way. */
export class WatchedClock extends ManualClock {
  readonly #waits = new Map<Timer, number>();

  /** Whether something waits for so many milliseconds in all. */
  isWaiting(ms: number): boolean {
    return this.#waits.values().some((one) => one === ms);
  }

  override after(ms: number, run: () => void): Timer {
    const inner = super.after(ms, () => {
      this.#waits.delete(timer);
      run();
    });
    const timer: Timer = {
      cancel: () => {
        this.#waits.delete(timer);
        inner.cancel();
      },
      refresh: () => inner.refresh(),
    };
    this.#waits.set(timer, ms);
    return timer;
  }
}
