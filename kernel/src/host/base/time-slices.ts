import type { Clock } from './ambient.js';

/** Milliseconds over which the use of callers is compared. */
const WINDOW = 1_000;
/** Milliseconds from which a piece of work is long: others notice that they wait for it. */
const LONG = 1;
/** How many times as long as its work a caller pauses that is ahead of another one. */
const PAUSE = 2;
/** Milliseconds of a window that must be in use before anybody has to wait. */
const BUSY = 50;
/** Milliseconds by which a caller must have used more than another one to be ahead of it. */
const MARGIN = 20;
/**
 * Milliseconds after which a caller that used nothing is no longer there. A long piece of work and
 * the pause after it, during which a caller may get nothing, do not count.
 */
const PRESENCE = 100;
/** Milliseconds for which the least use of all is not computed again. */
const LEAST_AGE = 5;

/** What a caller has used of the event loop, in milliseconds. */
interface Use {
  /** In the window `window`. */
  recent: number;
  /** In the window before it. */
  before: number;
  window: number;
  /** When it last used something. */
  at: number;
}

/**
 * Shares the event loop between callers: who used least of the last second is next (S-71).
 *
 * 1. `next` is asked before the work of a request begins. On a server that has time, the work
 *    begins at once. What it uses is measured to the end of this round of the event loop.
 * 2. After a long piece of work, requests wait until the event loop has gone round. Then the caller
 *    that has used least goes first, one piece of work in each round.
 * 3. A caller that has used more than another one pauses after a long piece of work for twice as
 *    long as it took: most of the time is left to the others. They do not wait for it.
 */
export class TimeSlices {
  readonly #clock: Clock;
  readonly #uses = new Map<string, Use>();
  /** The requests of each caller that wait, in order. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** What all together have used. */
  readonly #total: Use = { recent: 0, before: 0, window: 0, at: 0 };
  #least = { use: 0, until: 0 };
  /** Whose work is measured, and since when. */
  #current: Use | undefined;
  #since = 0;
  #endIsDue = false;
  /** Whether the event loop must go round before more work begins. */
  #isHeld = false;
  /** Until when callers pause that are ahead of others. */
  #pausedUntil = 0;
  /** What the last long piece of work took. */
  #lastLong = 0;
  #isTimed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves when a request of the caller may begin its work; undefined if that is now. The work
   * must begin in the same round of the event loop.
   */
  next(caller: string): Promise<void> | undefined {
    const now = this.#clock.monotonic();
    if (!this.#mustWait(caller, now)) {
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

  #mustWait(caller: string, now: number): boolean {
    if (this.#isHeld) return true;
    return (this.#waiting.size > 0 || now < this.#pausedUntil) && this.#isAhead(caller, now);
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

  /** Counts what the current piece of work has used. */
  #measure(now: number): void {
    const use = this.#current;
    if (!use) return;
    const used = now - this.#since;
    renew(use, now);
    use.recent += used;
    use.at = now;
    if (renew(this.#total, now)) this.#forget(now);
    this.#total.recent += used;
    if (used < LONG) return;
    this.#lastLong = used;
    this.#hold();
    if (this.#isBehind(use, now)) return;
    this.#pausedUntil = now + PAUSE * used;
  }

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
    const pause = this.#pausedUntil - now;
    if (pause > 0 && this.#isAhead(caller, now)) {
      if (!this.#isTimed) this.#clock.after(pause, this.#onTime);
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
      const use = this.#uses.get(caller);
      const used = use ? usedIn(use, now) : 0;
      if (used >= least) continue;
      found = caller;
      least = used;
    }
    return found;
  }

  #isAhead(caller: string, now: number): boolean {
    const use = this.#uses.get(caller);
    return use !== undefined && !this.#isBehind(use, now);
  }

  /** Whether nobody has used less, by a margin, or there is time for all. */
  #isBehind(use: Use, now: number): boolean {
    return usedIn(this.#total, now) < BUSY || usedIn(use, now) <= this.#leastUse(now) + MARGIN;
  }

  /** The least that a caller has used that is there now. What a probe uses does not count. */
  #leastUse(now: number): number {
    if (now < this.#least.until) return this.#least.use;
    let least = Number.POSITIVE_INFINITY;
    for (const use of this.#uses.values()) {
      if (now - use.at > PRESENCE + (1 + PAUSE) * this.#lastLong) continue;
      const used = usedIn(use, now);
      if (used >= LONG && used < least) least = used;
    }
    this.#least = { use: least, until: now + LEAST_AGE };
    return least;
  }

  #forget(now: number): void {
    for (const [caller, use] of this.#uses) if (usedIn(use, now) === 0) this.#uses.delete(caller);
  }

  #useOf(caller: string, now: number): Use {
    const known = this.#uses.get(caller);
    if (known) {
      renew(known, now);
      return known;
    }
    const use: Use = { recent: 0, before: 0, window: windowOf(now), at: now };
    this.#uses.set(caller, use);
    return use;
  }
}

function windowOf(now: number): number {
  return Math.floor(now / WINDOW);
}

/** Moves a use on to the window of now. Returns whether it is another one. */
function renew(use: Use, now: number): boolean {
  const window = windowOf(now);
  if (window === use.window) return false;
  use.before = window === use.window + 1 ? use.recent : 0;
  use.recent = 0;
  use.window = window;
  return true;
}

/** The use of the last second, as if that of the window before it had been even. */
function usedIn(use: Use, now: number): number {
  renew(use, now);
  return use.recent + use.before * (1 - (now % WINDOW) / WINDOW);
}
