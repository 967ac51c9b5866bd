/**
 * A bounded pipe from one writer to one reader, batch by batch. A slow reader makes the writer wait, and so whatever the writer reads
 * from; it never makes the pipe grow.
 */
export class Channel<T> implements AsyncIterableIterator<T, undefined> {
  #capacity: number;
  readonly #waiting: T[] = [];
  /** The reader's, when it waits for the writer. */
  #wanted: ((result: IteratorResult<T, undefined>) => void) | undefined;
  /** The writer's, when it waits for the reader. */
  #room: (() => void) | undefined;
  #ended = false;
  readonly #onLeave: () => void;

  /** @param onLeave called when the reader stops before the end. */
  constructor(capacity: number, onLeave: () => void) {
    this.#capacity = capacity;
    this.#onLeave = onLeave;
  }

  /** Hands an item over. Where it returns a promise, the pipe is full, and the writer waits for it before it goes on. */
  write(item: T): Promise<void> | undefined {
    if (this.#ended) return undefined;
    if (this.#wanted) {
      const give = this.#wanted;
      this.#wanted = undefined;
      give({ value: item, done: false });
      return undefined;
    }
    this.#waiting.push(item);
    if (this.#waiting.length < this.#capacity) return undefined;
    return new Promise((resolve) => {
      this.#room = resolve;
    });
  }

  /** The writer need not wait for the reader any more: what is still to come is little. */
  hurry(): void {
    this.#capacity = Number.POSITIVE_INFINITY;
    this.#release();
  }

  /** Nothing more will be written. */
  end(): void {
    this.#ended = true;
    this.#wanted?.({ value: undefined, done: true });
    this.#wanted = undefined;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const item = this.#waiting.shift();
    if (item !== undefined) {
      this.#release();
      return Promise.resolve({ value: item, done: false });
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve) => {
      this.#wanted = resolve;
    });
  }

  /** The reader goes: what waits is dropped, and the writer need not wait for it. */
  return(): Promise<IteratorResult<T, undefined>> {
    if (!this.#ended) {
      this.end();
      this.#onLeave();
    }
    this.#waiting.length = 0;
    this.#release();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #release(): void {
    this.#room?.();
    this.#room = undefined;
  }
}
