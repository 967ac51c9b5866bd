import { randomBytes } from 'node:crypto';

/** The source of time. Tests replace it to control time. @public */
export interface Clock {
  /** Milliseconds since 1970, by the wall clock. For timestamps, not for measuring. */
  now(): number;
  /** Milliseconds of a clock that never goes backwards. For measuring. */
  monotonic(): number;
  /** Calls `run` once after `ms` milliseconds. The timer does not keep the process alive. */
  after(ms: number, run: () => void): Timer;
}

/** A timer of a `Clock`. @public */
export interface Timer {
  cancel(): void;
  /** Restarts the wait from now. */
  refresh(): void;
}

/** The source of randomness. Tests replace it to predict ids. @public */
export interface IdSource {
  /** `length` characters of `0-9A-Za-z`, unguessable. */
  base62(length: number): string;
  /** `length` characters of `0-9a-f`, unguessable. */
  hex(length: number): string;
  /** A number from 0 to 1, 1 excluded. For jitter. */
  fraction(): number;
}

/** The longest timeout of Node.js in milliseconds: 24.8 days. A longer one would fire at once. */
const MAX_TIMEOUT = 2 ** 31 - 1;

/** Timers restart with everything that is read or written: a restart only notes the time. */
class SystemTimer implements Timer {
  readonly #ms: number;
  readonly #run: () => void;
  #timeout: NodeJS.Timeout;
  #isWaiting = true;
  /** Set if the wait was restarted since the timeout began, or is longer than one timeout. */
  #restartedAt: number | undefined;

  constructor(ms: number, run: () => void) {
    this.#ms = ms;
    this.#run = run;
    this.#timeout = this.#begin(ms);
  }

  cancel(): void {
    clearTimeout(this.#timeout);
  }

  refresh(): void {
    if (this.#isWaiting) this.#restartedAt = performance.now();
    else this.#timeout = this.#begin(this.#ms);
  }

  #begin(ms: number): NodeJS.Timeout {
    this.#isWaiting = true;
    if (ms <= MAX_TIMEOUT) this.#restartedAt = undefined;
    else this.#restartedAt ??= performance.now();
    return setTimeout(SystemTimer.#onTimeout, Math.min(ms, MAX_TIMEOUT), this).unref();
  }

  static #onTimeout(timer: SystemTimer): void {
    const left = timer.#restartedAt === undefined ? 0 : timer.#restartedAt + timer.#ms - performance.now();
    if (left > 0) {
      timer.#timeout = timer.#begin(left);
      return;
    }
    timer.#isWaiting = false;
    timer.#restartedAt = undefined;
    timer.#run();
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, run) => new SystemTimer(ms, run),
};

const BASE62 = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz');
const BLOCK = 4096;

/** Draws random bytes in blocks: a system call costs more than everything else in an id. */
class RandomPool {
  #block = Buffer.alloc(0);
  #next = 0;

  byte(): number {
    if (this.#next === this.#block.length) this.#draw();
    return this.#block[this.#next++] as number;
  }

  /** `count` bytes as hexadecimal digits. */
  hex(count: number): string {
    if (count > BLOCK) return randomBytes(count).toString('hex');
    if (this.#next + count > this.#block.length) this.#draw();
    this.#next += count;
    return this.#block.toString('hex', this.#next - count, this.#next);
  }

  #draw(): void {
    this.#block = randomBytes(BLOCK);
    this.#next = 0;
  }
}

const pool = new RandomPool();

/** Where most ids are put together. */
const SCRATCH = Buffer.alloc(64);

export const systemIds: IdSource = {
  base62(length) {
    const id = length <= SCRATCH.length ? SCRATCH : Buffer.alloc(length);
    for (let i = 0; i < length; ) {
      const byte = pool.byte();
      if (byte < 248) id[i++] = BASE62[byte % 62] as number; // 248 = 4 × 62: higher bytes would make some characters more frequent
    }
    return id.toString('latin1', 0, length);
  },
  hex: (length) => (length % 2 === 0 ? pool.hex(length / 2) : pool.hex((length + 1) / 2).slice(0, length)),
  fraction: () => Math.random(),
};
