import { readEventStream, type Streamed } from './server-sent-events.js';

/** An answer that is read as it comes. */
export class LiveStream {
  readonly headers: Headers;
  readonly #reader: ReadableStreamDefaultReader<string>;
  readonly #abort: AbortController;
  #received = '';

  /** @param abort of the request. */
  constructor(response: Response, abort: AbortController) {
    if (!response.body) throw new Error('the answer has no body');
    this.headers = response.headers;
    this.#reader = response.body.pipeThrough(new TextDecoderStream('utf-8', { fatal: true })).getReader();
    this.#abort = abort;
  }

  get received(): string {
    return this.#received;
  }

  /** Reads until the text has come. @throws where the stream ends before. */
  async until(text: string): Promise<void> {
    while (!this.#received.includes(text)) {
      if (!(await this.#more())) throw new Error(`the stream ended after ${JSON.stringify(this.#received)}`);
    }
  }

  /** Reads to the end. @throws TypeError where the connection breaks off. */
  async end(): Promise<Streamed> {
    while (await this.#more());
    return readEventStream(this.#received);
  }

  /** Hangs up. */
  leave(): void {
    this.#abort.abort();
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#reader.read();
    this.#received += value ?? '';
    return !done;
  }
}
