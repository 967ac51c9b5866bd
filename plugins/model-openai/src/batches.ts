import type { ModelEvent } from '@plugboard/kernel';

type Batch = readonly ModelEvent[];
type Result = IteratorResult<Batch, undefined>;

const END: Result = Object.freeze({ value: undefined, done: true });

/**
 * What lies between a socket, which brings events when it likes, and a reader, who takes them when ready. Everything that has gathered
 * meanwhile is one batch.
 */
export class Batches implements AsyncIterableIterator<Batch, undefined> {
  readonly #onTaken: () => void;
  readonly #onLeft: () => void;
  #gathered: ModelEvent[] = [];
  #waiting: PromiseWithResolvers<Result> | undefined;
  #isOver = false;
  /** In an object, because anything may be thrown. */
  #failure: { readonly error: unknown } | undefined;

  /**
   * @param onTaken called when the reader has taken what had gathered.
   * @param onLeft called when the reader leaves before the end.
   */
  constructor(onTaken: () => void, onLeft: () => void) {
    this.#onTaken = onTaken;
    this.#onLeft = onLeft;
  }

  /** Where the writer puts events. To be asked for again each time: what was taken is the reader's. */
  get gathered(): ModelEvent[] {
    return this.#gathered;
  }

  next(): Promise<Result> {
    if (this.#hasNews()) return new Promise((resolve, reject) => this.#tell(resolve, reject));
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  return(): Promise<Result> {
    const isEarly = !this.#isOver;
    this.#drop();
    this.end();
    if (isEarly) this.#onLeft();
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Gives what has gathered to a reader that waits for it. */
  flush(): void {
    const waiting = this.#waiting;
    if (waiting === undefined || !this.#hasNews()) return;
    this.#waiting = undefined;
    this.#tell(waiting.resolve, waiting.reject);
  }

  /** Nothing more will be put. */
  end(): void {
    this.#isOver = true;
    this.flush();
  }

  /** Throws once what has gathered is read. */
  fail(error: unknown): void {
    this.#failure = { error };
    this.end();
  }

  /** Throws at once, whatever has gathered. */
  abort(error: unknown): void {
    this.#drop();
    this.fail(error);
  }

  #hasNews(): boolean {
    return this.#gathered.length > 0 || this.#isOver;
  }

  #tell(resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    if (this.#gathered.length > 0) {
      const value = this.#gathered;
      this.#gathered = [];
      resolve({ value, done: false });
      this.#onTaken();
    } else if (this.#failure) {
      const { error } = this.#failure;
      this.#failure = undefined;
      reject(error);
    } else resolve(END);
  }

  #drop(): void {
    this.#gathered = [];
    this.#failure = undefined;
  }
}
