import type { ModelEvent } from '@plugboard/kernel';

type Batch = readonly ModelEvent[];
type Result = IteratorResult<Batch, undefined>;

const END: Result = Object.freeze({ value: undefined, done: true });

/** A queue between a socket and one reader. What was added since the last read is one batch. */
export class Batches implements AsyncIterableIterator<Batch, undefined> {
  readonly #onRead: () => void;
  readonly #onReturn: () => void;
  readonly #onLeft: () => void;
  #pending: ModelEvent[] = [];
  #waiting: PromiseWithResolvers<Result> | undefined;
  #isOver = false;
  /** Wrapped in an object, because any value may be thrown. */
  #failure: { readonly error: unknown } | undefined;

  /**
   * @param onRead called after the reader has taken a batch.
   * @param onReturn called when the reader stops before the end.
   * @param onLeft called when the reader has all of it, or has stopped. Perhaps repeatedly.
   */
  constructor(onRead: () => void, onReturn: () => void, onLeft: () => void = () => {}) {
    this.#onLeft = onLeft;
    this.#onRead = onRead;
    this.#onReturn = onReturn;
  }

  /** The list to append to. Get it again after a flush: a batch that was read is the reader's. */
  get pending(): ModelEvent[] {
    return this.#pending;
  }

  next(): Promise<Result> {
    if (this.#isReady()) return new Promise((resolve, reject) => this.#deliver(resolve, reject));
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  return(): Promise<Result> {
    const isEarly = !this.#isOver;
    this.#clear();
    this.end();
    if (isEarly) this.#onReturn();
    this.#onLeft();
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Delivers the pending events to a waiting reader. */
  flush(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || !this.#isReady()) return;
    this.#waiting = undefined;
    this.#deliver(waiting.resolve, waiting.reject);
  }

  /** No more events will be added. */
  end(): void {
    this.#isOver = true;
    this.flush();
  }

  /** Throws `error` after the pending events have been read. */
  fail(error: unknown): void {
    this.#failure = { error };
    this.end();
  }

  /** Drops the pending events and throws `error` at the next read. */
  abort(error: unknown): void {
    this.#clear();
    this.fail(error);
  }

  #isReady(): boolean {
    return this.#pending.length > 0 || this.#isOver;
  }

  #deliver(resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    if (this.#pending.length > 0) {
      const value = this.#pending;
      this.#pending = [];
      resolve({ value, done: false });
      this.#onRead();
      return;
    }
    this.#onLeft();
    const { error } = this.#failure ?? {};
    if (this.#failure) reject(error);
    else resolve(END);
    this.#failure = undefined;
  }

  #clear(): void {
    this.#pending = [];
    this.#failure = undefined;
  }
}
