/**
 * A bounded buffer between one writer and one reader. A slow reader makes the writer wait, and with
 * it the source that the writer reads from. An item that a reader already waits for is not
 * measured.
 */
export class Channel<T> implements AsyncIterableIterator<T, undefined> {
  #limit: number;
  readonly #sizeOf: (item: T) => number;
  readonly #queue: T[] = [];
  /** The size of each item in the queue. */
  readonly #sizes: number[] = [];
  /** Size of the whole queue. */
  #size = 0;
  /** Resolves the read of a waiting reader. */
  #pendingRead: ((result: IteratorResult<T, undefined>) => void) | undefined;
  /** Resumes a waiting writer. */
  #resumeWriter: (() => void) | undefined;
  #ended = false;
  readonly #onReturn: () => void;

  /**
   * @param limit the size of the queue at which the writer waits, in the unit of `sizeOf`.
   * @param onReturn called when the reader stops before the end.
   */
  constructor(limit: number, sizeOf: (item: T) => number, onReturn: () => void) {
    this.#limit = limit;
    this.#sizeOf = sizeOf;
    this.#onReturn = onReturn;
  }

  /** Whether the writer has to wait before it writes more. */
  get isFull(): boolean {
    return this.#size >= this.#limit;
  }

  /**
   * Writes an item. If it returns a promise, the buffer is full, and the writer must wait for it.
   */
  write(item: T): Promise<void> | undefined {
    if (this.#ended) return undefined;
    if (this.#pendingRead) {
      const give = this.#pendingRead;
      this.#pendingRead = undefined;
      give({ value: item, done: false });
      return undefined;
    }
    const size = this.#sizeOf(item);
    this.#queue.push(item);
    this.#sizes.push(size);
    this.#size += size;
    if (this.#size < this.#limit) return undefined;
    return new Promise((resolve) => {
      this.#resumeWriter = resolve;
    });
  }

  /**
   * Removes the limit of the buffer: the writer no longer waits. For a writer that is about to end.
   */
  removeLimit(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#release();
  }

  /** Ends the channel. The reader still receives what is buffered. */
  end(): void {
    this.#ended = true;
    this.#pendingRead?.({ value: undefined, done: true });
    this.#pendingRead = undefined;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const item = this.#queue.shift();
    if (item !== undefined) {
      this.#size -= this.#sizes.shift() ?? 0;
      if (this.#size < this.#limit) this.#release();
      return Promise.resolve({ value: item, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#pendingRead = resolve;
    });
  }

  /** The reader stops: drops what is buffered, and resumes the writer. */
  return(): Promise<IteratorResult<T, undefined>> {
    if (!this.#ended) {
      this.end();
      this.#onReturn();
    }
    this.#queue.length = 0;
    this.#sizes.length = 0;
    this.#size = 0;
    this.#release();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #release(): void {
    this.#resumeWriter?.();
    this.#resumeWriter = undefined;
  }
}
