import { performance } from 'node:perf_hooks';
import type { Clock } from './ambient.js';

/** Milliseconds in which use fades to a third: callers are compared by what they used lately. */
const SECOND = 1_000;
/** Milliseconds after which nothing is left of a use. */
const FORGOTTEN = 10 * SECOND;
/** Milliseconds of work from which it is long: others notice that they wait for it. */
const LONG = 1;
/** How many times as long as their long work callers pause that are ahead of another one. */
const PAUSE = 2;
/** How many milliseconds of work one that is measured stands for at most. */
const MAX_SCALE = 4;
/** Milliseconds by which a caller must have used more than another one to be ahead of it. */
const MARGIN = 20;
/** Milliseconds after which a caller that used nothing has left, without those of long work. */
const PRESENCE = 250;
/** Milliseconds for which the least use of all is not computed again. */
const LEAST_AGE = 5;

/** What a caller has used of the event loop. */
interface Use {
  /** Milliseconds, as of `at`. They fade. */
  ms: number;
  /** On the monotonic clock. */
  at: number;
  /** The same without long work. */
  seen: number;
}

/**
 * Shares the event loop between callers: the one that used least of the last second is next (S-71).
 *
 * 1. What a caller uses is measured from where its work begins (`next`) or goes on after a wait
 *    (`goOn`) to where it waits.
 * 2. After long work, requests wait until the event loop has gone round. Then the caller that has
 *    used least begins, one in each round.
 * 3. Callers that have used more than another one are ahead. After long work of one of them, they
 *    pause for twice as long: most of the time is left to the others, which do not wait for it.
 * 4. What is not measured, such as bodies that arrive, transactions and garbage collection, is
 *    shared in proportion: if half of the work of a second was measured, pauses are twice as long.
 *
 * On a server that has time, and for a single caller, work begins at once.
 */
export class TimeSlices {
  readonly #clock: Clock;
  readonly #activeTime: () => number;
  readonly #uses = new Map<string, Use>();
  /** The requests of each caller that wait, in order. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #least = { ms: 0, until: 0 };
  /** The second that runs: its beginning, the active time then, and what was measured since. */
  #second = { at: 0, active: 0, measured: 0 };
  /** The work of the second before it, as a multiple of what was measured of it. */
  #scale = 1;
  /** Whose work is measured, and since when. */
  #current: Use | undefined;
  #since = 0;
  #endIsDue = false;
  /** Whether the event loop must go round before more work begins. */
  #isHeld = false;
  /** Until when callers pause that are ahead of others. */
  #pausedUntil = 0;
  /** What all long work took so far: meanwhile no other caller could use anything. */
  #long = 0;
  #isTimed = false;

  /** @param activeTime milliseconds that the event loop has worked so far. */
  constructor(clock: Clock, activeTime = () => performance.eventLoopUtilization().active) {
    this.#clock = clock;
    this.#activeTime = activeTime;
  }

  /**
   * Resolves when a request of the caller may begin its work; undefined if that is now. The work
   * must begin in the same round of the event loop.
   */
  next(caller: string): Promise<void> | undefined {
    const now = this.#clock.monotonic();
    if (!this.#isHeld && !this.#pauses(caller, now)) {
      this.#begin(caller, now);
      return undefined;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(caller);
    if (queue) queue.push(resolve);
    else this.#waiting.set(caller, [resolve]);
    if (!this.#isHeld) this.#grant();
    return promise;
  }

  /** Work of the caller goes on after a wait: it is measured from here. */
  goOn(caller: string): void {
    this.#begin(caller, this.#clock.monotonic());
  }

  #begin(caller: string, now: number): void {
    this.#measure(now);
    this.#current = this.#useOf(caller, now);
    this.#since = now;
    if (this.#endIsDue) return;
    this.#endIsDue = true;
    queueMicrotask(this.#scheduleEnd);
  }

  /** From a microtask, a tick comes after all the others: the work has gone as far as it could. */
  readonly #scheduleEnd = () => process.nextTick(this.#end);

  readonly #end = () => {
    this.#endIsDue = false;
    this.#measure(this.#clock.monotonic());
    this.#current = undefined;
  };

  /** Counts what the current work has used. */
  #measure(now: number): void {
    const use = this.#current;
    if (!use) return;
    const used = now - this.#since;
    use.ms = leftOf(use, now) + used;
    use.at = now;
    if (used >= LONG) this.#long += used;
    use.seen = now - this.#long;
    this.#second.measured += used;
    if (now - this.#second.at > SECOND) this.#onSecond(now);
    if (used < LONG) return;
    this.#hold();
    if (this.#isAhead(use, now)) this.#pausedUntil = Math.max(this.#pausedUntil, now) + PAUSE * used * this.#scale;
  }

  /** Lets the event loop go round before more work begins. */
  #hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    setImmediate(this.#onRound);
  }

  readonly #onRound = () => {
    this.#isHeld = false;
    this.#grant();
  };

  readonly #onTime = () => {
    this.#isTimed = false;
    if (!this.#isHeld) this.#grant();
  };

  /** Lets the next request begin, or waits for the end of its pause. */
  #grant(): void {
    const now = this.#clock.monotonic();
    const caller = this.#nextCaller(now);
    if (caller === undefined) return;
    if (this.#pauses(caller, now)) {
      if (!this.#isTimed) this.#clock.after(this.#pausedUntil - now, this.#onTime);
      this.#isTimed = true;
      return;
    }
    const queue = this.#waiting.get(caller) ?? [];
    const resolve = queue.shift();
    // Behind the others, so that those with equal use come one after the other.
    this.#waiting.delete(caller);
    if (queue.length > 0) this.#waiting.set(caller, queue);
    this.#begin(caller, now);
    this.#hold();
    resolve?.();
  }

  /** The caller that waits and has used least. */
  #nextCaller(now: number): string | undefined {
    let found: string | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const caller of this.#waiting.keys()) {
      const used = leftOf(this.#uses.get(caller), now);
      if (used >= least) continue;
      found = caller;
      least = used;
    }
    return found;
  }

  #pauses(caller: string, now: number): boolean {
    return now < this.#pausedUntil && this.#isAhead(this.#uses.get(caller), now);
  }

  #isAhead(use: Use | undefined, now: number): boolean {
    return leftOf(use, now) > this.#leastUse(now) + MARGIN;
  }

  /** The least that a caller has used that is there. What others do not notice does not count. */
  #leastUse(now: number): number {
    if (now < this.#least.until) return this.#least.ms;
    let least = Number.POSITIVE_INFINITY;
    for (const use of this.#uses.values()) {
      if (now - this.#long - use.seen > PRESENCE) continue;
      const used = leftOf(use, now);
      if (used >= LONG && used < least) least = used;
    }
    this.#least = { ms: least, until: now + LEAST_AGE };
    return least;
  }

  /** A second is over: compares what was measured with what the event loop worked. */
  #onSecond(now: number): void {
    const active = this.#activeTime();
    this.#scale = Math.min(Math.max((active - this.#second.active) / this.#second.measured, 1), MAX_SCALE);
    this.#second = { at: now, active, measured: 0 };
    for (const [caller, { at }] of this.#uses) if (now - at > FORGOTTEN) this.#uses.delete(caller);
  }

  #useOf(caller: string, now: number): Use {
    let use = this.#uses.get(caller);
    if (!use) {
      use = { ms: 0, at: now, seen: now - this.#long };
      this.#uses.set(caller, use);
    }
    return use;
  }
}

/** What is left of a use, in milliseconds. */
function leftOf(use: Use | undefined, now: number): number {
  return use ? use.ms * Math.exp((use.at - now) / SECOND) : 0;
}
