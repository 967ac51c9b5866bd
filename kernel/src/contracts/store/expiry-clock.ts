import type { Clock } from '../../host/base/ambient.js';

/** Milliseconds by which the wall clock may differ from the steady one before that is a jump. */
const TOLERANCE = 60_000;
/** Milliseconds that a clock must stay where it jumped to before anything expires by it. */
const WAIT = 60 * 60_000;

/**
 * The time by which what is stored expires. The wall clock can be wrong for a while: at the start,
 * after a pause of the machine, while it is corrected. Nothing may be lost by that (S-76).
 *
 * 1. The steady time is that of the monotonic clock, beginning with the wall clock.
 * 2. Where the wall clock jumps, the steady time goes on as before, and follows after an hour.
 * 3. What is written gets the later of both times, and what is compared the earlier: a jump in
 *    either direction only keeps things longer.
 *
 * @experimental
 */
export class ExpiryClock {
  readonly #clock: Clock;
  /** The steady time at `#at` of the monotonic clock. */
  #steady: number;
  #at: number;
  /** Since when the wall clock differs. */
  #differsSince: number | undefined;

  /** @param last the latest time that an earlier process has written, if there is one. */
  constructor(clock: Clock, last = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#steady = Math.min(clock.now(), last);
    this.#at = clock.monotonic();
  }

  /** To compare with: what is written before it, less a lifetime, has expired. An integer. */
  now(): number {
    return Math.floor(Math.min(this.#clock.now(), this.#advance()));
  }

  /** To write. An integer. */
  stamp(): number {
    return Math.floor(Math.max(this.#clock.now(), this.#advance()));
  }

  #advance(): number {
    const [wall, at] = [this.#clock.now(), this.#clock.monotonic()];
    const steady = this.#steady + at - this.#at;
    const differs = Math.abs(wall - steady) > TOLERANCE;
    this.#differsSince = differs ? (this.#differsSince ?? at) : undefined;
    const follows = this.#differsSince === undefined || at - this.#differsSince >= WAIT;
    if (follows) this.#differsSince = undefined;
    this.#steady = follows ? wall : steady;
    this.#at = at;
    return this.#steady;
  }
}
