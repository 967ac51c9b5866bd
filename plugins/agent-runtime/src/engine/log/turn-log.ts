import { type Batch, sizeOf } from './batch.js';

/**
 * Bytes that a reader may be behind before the turn waits, and with it the model's socket.
 * Sizes are approximate.
 */
const MAX_BEHIND = 64 * 1024;
/** Bytes that are kept for readers that join later. Beyond it they begin with the turn so far. */
const MAX_KEPT = 1024 * 1024;

interface SizedBatch {
  readonly batch: Batch;
  readonly size: number;
}

/** Who reads a log. A log is told of no reader that has left. */
export interface LogPosition {
  /** The position of the next batch. */
  readonly position: number;
  /** Bytes of the log before it. */
  readonly passed: number;
  /** A batch was written, or the log has ended. */
  wake(): void;
}

/** Who writes a log. */
interface LogWriter {
  /** What readers receive instead of anything else, if that must not be sent any more. */
  readonly lost: Batch | undefined;
}

/** Who reads a log and may be handed a batch that the log then does not keep. */
interface LogReader extends LogPosition {
  /** Hands over the next batch if the reader waits for one. Returns whether it did. */
  hand(batch: Batch): boolean;
}

/**
 * The batches of one turn, each once, however many read them. Positions count batches from 0.
 *
 * 1. Readers and watchers hold positions in it, and take what follows from there (`at`).
 * 2. A reader that is more than 64 KiB behind makes the writer wait until it has read or left. A
 *    watcher never does.
 * 3. What no position needs any more is dropped. For readers that may join later, the first MiB is
 *    kept. Who comes later still begins with the turn so far in fewer events, which is not of this
 *    log.
 */
export class TurnLog {
  readonly #writer: LogWriter | undefined;
  readonly #readers: LogReader[] = [];
  /** Undefined while nobody has watched. */
  #watchers: LogPosition[] | undefined;
  readonly #batches: SizedBatch[] = [];
  #first = 0;
  #kept = 0;
  /** Bytes of all batches that were kept for a while. */
  #written = 0;
  /** Whether batches are kept for readers to come. */
  #keeps: boolean;
  #limit = MAX_BEHIND;
  /** Settles when the writer may continue. */
  #wait: PromiseWithResolvers<void> | undefined;
  #ended = false;

  /**
   * @param keeps whether readers may join after the first batch.
   * @param writer whose lease may be lost.
   */
  constructor(keeps: boolean, writer?: LogWriter) {
    this.#keeps = keeps;
    this.#writer = writer;
  }

  /** The last batch of each reader, once nothing else may be read. */
  get lost(): Batch | undefined {
    return this.#writer?.lost;
  }

  get readers(): number {
    return this.#readers.length;
  }

  get end(): number {
    return this.#first + this.#batches.length;
  }

  /** Bytes of the log before its end. */
  get written(): number {
    return this.#written;
  }

  /** Bytes of the batches that are kept. */
  get kept(): number {
    return this.#kept;
  }

  /** Whether all batches from the first on are there. */
  get isWhole(): boolean {
    return this.#first === 0;
  }

  /** The batch at a position that a reader or watcher holds, and its size. */
  at(position: number): SizedBatch | undefined {
    return this.#batches[position - this.#first];
  }

  addReader(reader: LogReader): void {
    this.#readers.push(reader);
  }

  addWatcher(watcher: LogPosition): void {
    this.#watchers ??= [];
    this.#watchers.push(watcher);
  }

  /** Makes a watcher of a reader, or a reader of it again, at its position. */
  setReader(one: LogReader, isReader: boolean): void {
    this.#remove(one);
    if (isReader) this.addReader(one);
    else this.addWatcher(one);
    this.moved();
  }

  /** Removes a reader or watcher. The writer no longer waits for it. */
  leave(one: LogPosition): void {
    this.#remove(one);
    this.moved();
  }

  /** A reader or watcher has taken something. */
  moved(): void {
    this.#drop();
    if (this.#wait && !this.#isFull) this.#release();
  }

  /** Writes a batch. If it returns a promise, the writer must wait for it. */
  write(batch: Batch): Promise<void> | undefined {
    if (this.#ended) return undefined;
    if (!this.#keeps && this.#batches.length === 0 && !this.#watchers && this.#readers.length === 1) {
      if (this.#readers[0]?.hand(batch)) {
        this.#first++; // most batches of most turns come here
        return undefined;
      }
    }
    const size = sizeOf(batch);
    this.#batches.push({ batch, size });
    this.#kept += size;
    this.#written += size;
    for (const reader of this.#readers.slice()) reader.wake();
    for (const watcher of this.#watchers?.slice() ?? []) watcher.wake();
    this.#drop();
    if (!this.#isFull) return undefined;
    this.#wait ??= Promise.withResolvers();
    return this.#wait.promise;
  }

  /** The writer no longer waits for readers: it is about to end. */
  removeLimit(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#release();
  }

  /** Ends the log. Readers still take what they have not read. */
  close(): void {
    this.#ended = true;
    this.#keeps = false;
    for (const reader of this.#readers.slice()) reader.wake();
    for (const watcher of this.#watchers?.slice() ?? []) watcher.wake();
    this.#drop();
  }

  #remove(one: LogPosition): void {
    for (const list of [this.#readers, this.#watchers ?? []]) {
      const index = (list as LogPosition[]).indexOf(one);
      if (index >= 0) list.splice(index, 1);
    }
  }

  get #isFull(): boolean {
    for (const { passed } of this.#readers) if (this.#written - passed >= this.#limit) return true;
    return false;
  }

  #release(): void {
    this.#wait?.resolve();
    this.#wait = undefined;
  }

  /** Drops the batches that nobody needs any more. */
  #drop(): void {
    if (this.#kept > MAX_KEPT) this.#keeps = false;
    if (this.#keeps || this.#batches.length === 0) return;
    let needed = this.end;
    for (const { position } of this.#readers) if (position < needed) needed = position;
    for (const { position } of this.#watchers ?? []) if (position < needed) needed = position;
    const dropped = needed - this.#first;
    if (dropped <= 0) return;
    for (const { size } of this.#batches.splice(0, dropped)) this.#kept -= size;
    this.#first = needed;
  }
}
