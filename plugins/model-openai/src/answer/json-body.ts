import type { ModelEvent } from '@plugboard/kernel';
import type { Failures } from '../failure/failures.js';
import type { AnswerParser } from './answer-parser.js';
import type { BodyReader } from './body-reader.js';

/** Largest body in bytes. */
export const BODY_LIMIT = 16 * 2 ** 20;

/** Reads the body of an answer that is not streamed: one JSON object. */
export class JsonBody implements BodyReader {
  readonly isDone = false;
  readonly #answer: AnswerParser;
  readonly #failures: Failures;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(answer: AnswerParser, failures: Failures) {
    this.#answer = answer;
    this.#failures = failures;
  }

  read(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > BODY_LIMIT) throw this.#failures.tooLarge('an answer', BODY_LIMIT);
    this.#chunks.push(chunk);
  }

  end(events: ModelEvent[]): void {
    this.#answer.add(this.#parse(), events);
    this.#answer.end(true, events);
  }

  interrupt(failure: Error): void {
    throw failure;
  }

  #parse(): unknown {
    const [first] = this.#chunks;
    const body = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    try {
      return JSON.parse(body.toString());
    } catch (error) {
      throw this.#failures.unreadable('an answer that is not JSON', error);
    }
  }
}
