import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';

/** Parts that are read ahead of a slow reader. */
const MAX_WAITING = 256;
/** Characters of those parts, beyond which no further one is read. */
const MAX_UNREAD = 131_072;
/** Milliseconds in which a finished answer's connection may end by itself, to be used again. */
const MAX_END = 1000;

/** Reads an answer in batches, one for each read of the socket: cheaper than part by part. */
export class PartBatches {
  readonly #reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart>;
  #waiting: LanguageModelV4StreamPart[] = [];
  #unread = 0;
  #end: { readonly error?: unknown } | undefined;
  #onPart: (() => void) | undefined;
  #onRoom: (() => void) | undefined;

  constructor(stream: ReadableStream<LanguageModelV4StreamPart>) {
    this.#reader = stream.getReader();
    void this.#read();
  }

  /** The next parts, at least one; undefined at the end. @throws the error of the stream, last. */
  async next(): Promise<readonly LanguageModelV4StreamPart[] | undefined> {
    while (this.#waiting.length === 0 && !this.#end) {
      await new Promise<void>((resolve) => {
        this.#onPart = resolve;
      });
    }
    const parts = this.#waiting;
    this.#waiting = [];
    this.#unread = 0;
    this.#onRoom?.();
    if (parts.length > 0) return parts;
    if (this.#end && 'error' in this.#end) throw this.#end.error;
    return undefined;
  }

  /** Reads and drops the rest of a finished answer, so that its socket can be used again. */
  async finish(): Promise<void> {
    const timer = setTimeout(() => this.cancel(), MAX_END);
    try {
      while (await this.next());
    } catch {
      // The answer was complete before.
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes the socket, unless the answer has ended. */
  cancel(): void {
    this.#onRoom?.();
    this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (done) break;
        this.#waiting.push(value);
        this.#unread += 'delta' in value ? value.delta.length : 'input' in value ? value.input.length : 0;
        // What came with the same read follows within the same turn of the event loop.
        if (this.#waiting.length === 1) setImmediate(() => this.#onPart?.());
        if (this.#waiting.length >= MAX_WAITING || this.#unread >= MAX_UNREAD) {
          await new Promise<void>((resolve) => {
            this.#onRoom = resolve;
          });
        }
      }
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#onPart?.();
  }
}
