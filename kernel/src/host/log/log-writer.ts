import { close, fstatSync, mkdirSync, openSync, write, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Budget, heapLimit } from '../base/budget.js';
import type { LogSink } from './log.js';

/** Lines are written in batches, after so many bytes or milliseconds: a write each costs more. */
const [BATCH, DELAY] = [32 * 1024, 50];
/** Milliseconds after a failed write until the next attempt. */
const RETRY = 1_000;
/** Milliseconds that the end of the log has to be written when the process ends. */
const CLOSE_LIMIT = 1_000;
/** Lines that are written without delay. pino writes the level first. */
const URGENT = /^\{"level":"(?:warn|error|fatal)"/;

interface LogWriterOptions {
  /** A file descriptor, or the path of a file that is opened when the first line is written. */
  readonly to: number | string;
  /** Bytes of lines that may wait. */
  readonly limit: number;
  /** Converts a line for people. */
  readonly format?: (line: string) => string;
  /** Called when lines can be written again after some were dropped. */
  readonly onRecovered?: (dropped: number) => void;
}

/** Bytes of log lines that may wait, unless it is set: a 64th of the heap limit, 16 MiB at most. */
export function defaultLogBuffer(): number {
  return Math.min(Math.floor(heapLimit() / 64), 16 * 1024 * 1024);
}

/**
 * Writes log lines to a file descriptor, whatever is behind it. Nothing waits for it, and nothing
 * fails because of it (S-34):
 *
 * 1. Lines wait in memory until a batch is written. One write is in progress at most.
 * 2. A destination that is slow, or is not read at all, fills the memory for waiting lines. Further
 *    lines are dropped and counted.
 * 3. A write that fails (a full disk, a closed pipe) drops its batch. The next attempt follows a
 *    second later.
 * 4. When lines get through again, the number of dropped lines is reported.
 */
export class LogWriter implements LogSink {
  readonly budget: Budget;
  readonly #to: number | string;
  readonly #format: (line: string) => string;
  readonly #onRecovered: (dropped: number) => void;
  /** The open file descriptor. */
  #fd: number | undefined;
  #isStream = false;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #writing = false;
  /** Whether the open file is to be closed before the next write. */
  #renamed = false;
  /** Whether what waits is written at once, however little it is. */
  #urgent = false;
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  /** Whether the last write ended within a line. */
  #torn = false;
  #onIdle: () => void = () => {};

  constructor({ to, limit, format = (line) => line, onRecovered = () => {} }: LogWriterOptions) {
    this.#to = to;
    this.#format = format;
    this.#onRecovered = onRecovered;
    this.budget = new Budget({
      name: 'log lines in memory',
      unit: 'bytes',
      limit,
      setting: 'log.buffer',
    });
    process.on('exit', this.#writeLast);
  }

  /** Lines dropped since the last report. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    const text = this.#format(line);
    if (!this.budget.reserve([], text.length)) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(text);
    this.#waitingBytes += text.length;
    this.#urgent ||= URGENT.test(line);
    if (this.#isDue()) this.#flush();
    else this.#schedule(DELAY);
  }

  /** Opens a renamed file again. A write in progress ends in the renamed one. */
  reopen(): void {
    this.#renamed = typeof this.#to === 'string';
    if (!this.#writing) this.#closeRenamed();
  }

  /** Writes what waits and closes the file. A later line opens it again. */
  async end(): Promise<void> {
    await this.written();
    this.reopen();
    process.off('exit', this.#writeLast);
  }

  /** Resolves when all lines are written, or after a second. */
  async written(): Promise<void> {
    if (!this.#writing && this.#waiting.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    this.#urgent = true;
    const timer = setTimeout(resolve, CLOSE_LIMIT);
    this.#flush();
    await promise;
    clearTimeout(timer);
  }

  #isDue(): boolean {
    return this.#urgent || this.#waitingBytes >= Math.min(BATCH, this.budget.limit / 2);
  }

  #schedule(delay: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, delay).unref();
  }

  #flush(): void {
    if (this.#writing) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    if (lines.length === 0) {
      this.#onIdle();
      return;
    }
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#writing = true;
    this.#urgent = false;
    const bytes = lines.reduce((sum, { length }) => sum + length, 0);
    this.#send(`${this.#torn ? '\n' : ''}${lines.join('')}`, (error) => {
      this.#writing = false;
      this.#closeRenamed();
      this.budget.release([], bytes);
      if (error) this.#dropped += lines.length;
      else this.#reportDropped();
      if (error && this.#waiting.length > 0) this.#schedule(RETRY);
      else if (this.#waiting.length === 0 || this.#isDue()) this.#flush();
      else this.#schedule(DELAY);
    });
  }

  #reportDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    if (dropped > 0) this.#onRecovered(dropped);
  }

  #send(text: string, done: (error?: Error | null) => void): void {
    try {
      this.#fd ??= this.#open();
    } catch (error) {
      setImmediate(done, error as Error);
      return;
    }
    if (this.#isStream) process.stderr.write(text, done);
    else this.#writeFile(this.#fd, Buffer.from(text), done);
  }

  #open(): number {
    if (typeof this.#to === 'number') {
      this.#isStream = isStream(this.#to);
      if (this.#isStream) process.stderr.on('error', () => {}); // the callback of the write reports it
      return this.#to;
    }
    mkdirSync(dirname(this.#to), { recursive: true });
    return openSync(this.#to, 'a', 0o600);
  }

  #closeRenamed(): void {
    if (!this.#renamed) return;
    this.#renamed = false;
    if (this.#fd !== undefined) close(this.#fd, () => {}); // an error is ignored: the descriptor is released all the same
    this.#fd = undefined;
  }

  /** In the thread pool, because a file may be slow. */
  #writeFile(fd: number, bytes: Buffer, done: (error?: Error | null) => void): void {
    write(fd, bytes, (error, written) => {
      const rest = error ? bytes : bytes.subarray(written);
      if (!error && rest.length > 0) {
        this.#torn = true; // until the rest is there
        this.#writeFile(fd, rest, done);
        return;
      }
      if (!error) this.#torn = false;
      done(error);
    });
  }

  /** The process ends: tries once more to write what waits, without waiting for a reader. */
  readonly #writeLast = (): void => {
    if (this.#waiting.length === 0) return;
    try {
      writeSync(this.#fd ?? this.#open(), this.#waiting.join(''));
    } catch {
      // full, closed or not read
    }
  };
}

/** Whether to write through Node's stream, which never blocks on a reader that is too slow. */
function isStream(fd: number): boolean {
  const stat = fstatSync(fd);
  return fd === process.stderr.fd && (stat.isFIFO() || stat.isSocket() || process.stderr.isTTY);
}
