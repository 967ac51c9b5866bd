import type { ModelError } from '@plugboard/kernel';
import type { BodyReader } from './body-reader.js';

/** Bytes of an error's body that are looked at. */
const ENOUGH = 65_536;

/** Reads the body of a response that is no success, for what it says. */
export class ErrorBody implements BodyReader {
  readonly isDone = false;
  readonly #errorOf: (body: string) => ModelError;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(errorOf: (body: string) => ModelError) {
    this.#errorOf = errorOf;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= ENOUGH) this.end();
  }

  end(): never {
    throw this.#errorOf(Buffer.concat(this.#chunks).toString());
  }

  /** The status says more than the way in which its body was cut. */
  breakOff(): never {
    this.end();
  }
}
