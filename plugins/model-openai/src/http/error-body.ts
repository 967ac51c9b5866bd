import type { ModelError } from '@plugboard/kernel';
import type { BodyReader } from '../answer/body-reader.js';

/** How many bytes of an error body are read. */
const LIMIT = 65_536;

/** Reads the body of an error response. */
export class ErrorBody implements BodyReader {
  readonly isDone = false;
  readonly #errorFor: (body: string) => ModelError;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** @param errorFor makes the error from the body, as far as it was read. */
  constructor(errorFor: (body: string) => ModelError) {
    this.#errorFor = errorFor;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= LIMIT) this.end();
  }

  end(): never {
    throw this.#errorFor(Buffer.concat(this.#chunks).toString());
  }

  /** The status says more than the way its body was cut. */
  interrupt(): never {
    this.end();
  }
}
