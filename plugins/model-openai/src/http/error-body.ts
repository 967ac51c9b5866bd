import type { ModelError } from '@plugboard/kernel';
import type { BodyReader } from '../answer/body-reader.js';

/** Bytes of an error body that are read. */
const MAX_BODY = 65_536;

/** Reads the body of an error response. */
export class ErrorBody implements BodyReader {
  readonly isDone = false;
  readonly held = 0; // less than it takes to count
  readonly #errorFor: (body: string) => ModelError;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** @param errorFor makes the error from the part of the body that was read. */
  constructor(errorFor: (body: string) => ModelError) {
    this.#errorFor = errorFor;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= MAX_BODY) this.end();
  }

  end(): never {
    throw this.#errorFor(Buffer.concat(this.#chunks).toString());
  }

  /** Reports the status: it says more than how its body was cut off. */
  interrupt(): never {
    this.end();
  }
}
