/**
 * A bounded buffer between one writer and one reader. A slow reader makes the writer wait, and with
 * it the source that the writer reads from.
 */
export class Channel<T> implements AsyncIterableIterator<T, undefined> {
  #capacity: number;
  readonly #queue: T[] = [];
  /** Resolves the read of a waiting reader. */
  #pendingRead: ((result: IteratorResult<T, undefined>) => void) | undefined;
  /** Resumes a waiting writer. */
  #resumeWriter: (() => void) | undefined;
  #ended = false;
  readonly #onReturn: () => void;

  /** @param onReturn called when the reader stops before the end. */
  constructor(capacity: number, onReturn: () => void) {
    this.#capacity = capacity;
    this.#onReturn = onReturn;
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
    this.#queue.push(item);
    if (this.#queue.length < this.#capacity) return undefined;
    return new Promise((resolve) => {
      this.#resumeWriter = resolve;
    });
  }

  /** Removes the limit of the buffer: the writer no longer waits. For a writer that is about to end. */
  removeLimit(): void {
    this.#capacity = Number.POSITIVE_INFINITY;
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
      this.#release();
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
