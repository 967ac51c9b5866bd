import type { Batch } from './batch.js';
import type { LogPosition, TurnLog } from './turn-log.js';

/** A position in the log of a turn, and what is read from there. */
export abstract class LogCursor implements LogPosition {
  readonly #log: TurnLog;
  /** The turn so far in fewer events, which is read first. */
  #soFar: Batch | undefined;
  #position: number;
  #passed: number;

  /**
   * @param soFar read in place of what was written so far; undefined to read the log from its
   *   first batch.
   */
  constructor(log: TurnLog, soFar: Batch | undefined) {
    this.#log = log;
    this.#soFar = soFar;
    this.#position = soFar ? log.end : 0;
    this.#passed = soFar ? log.written : 0;
  }

  get position(): number {
    return this.#position;
  }

  get passed(): number {
    return this.#passed;
  }

  /** Bytes of the log that it has not taken. */
  get unread(): number {
    return this.#log.written - this.#passed;
  }

  /** Takes the next batch; undefined if none is there yet. */
  take(): Batch | undefined {
    const lost = this.#log.lost;
    if (lost) return lost;
    const soFar = this.#soFar;
    this.#soFar = undefined;
    if (soFar) return soFar;
    const next = this.#log.at(this.#position);
    if (!next) return undefined;
    this.#position++;
    this.#passed += next.size;
    this.#log.moved();
    return next.batch;
  }

  /** The next batch was handed over, past the log. */
  protected skip(): void {
    this.#position++;
  }

  /** Leaves the log, which no longer keeps anything for it. */
  leave(): void {
    this.#soFar = undefined;
    this.#log.leave(this);
    this.#position = this.#log.end;
    this.#passed = this.#log.written;
  }

  abstract wake(): void;
}
