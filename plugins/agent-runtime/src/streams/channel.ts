/**
 * A bounded pipe from one writer to one reader, batch by batch. A slow reader makes the writer
 * wait, and so whatever the writer reads from; it never makes the pipe grow.
 */
export class Channel<T> implements AsyncIterableIterator<T, undefined> {
  #capacity: number;
  readonly #queue: T[] = [];
  /** The reader's, when it waits for the writer. */
  #pendingRead: ((result: IteratorResult<T, undefined>) => void) | undefined;
  /** The writer's, when it waits for the reader. */
  #resumeWriter: (() => void) | undefined;
  #ended = false;
  readonly #onReturn: () => void;

  /** @param onReturn called when the reader stops before the end. */
  constructor(capacity: number, onReturn: () => void) {
    this.#capacity = capacity;
    this.#onReturn = onReturn;
  }

  /**
   * Hands an item over. Where it returns a promise, the pipe is full, and the writer waits for it
   * before it goes on.
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

  /** The writer need not wait for the reader any more: what is still to come is little. */
  unbound(): void {
    this.#capacity = Number.POSITIVE_INFINITY;
    this.#release();
  }

  /** Nothing more will be written. */
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

  /** The reader goes: what waits is dropped, and the writer need not wait for it. */
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
