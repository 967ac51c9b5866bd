import type { ModelEvent } from '@plugboard/kernel';
import { AnswerTooLarge } from '../failure/answer-too-large.js';
import type { Failures } from '../failure/failures.js';
import { parseJson } from '../json/split-json.js';
import type { AnswerParser } from './answer-parser.js';
import type { BodyReader } from './body-reader.js';
import { EventStream } from './event-stream.js';

/** Bytes of a body. */
const MAX_BODY = 16 * 2 ** 20;

/** Additions of some servers to the JSON: a byte order mark, and the end of a stream. */
const ADDITIONS = /^\ufeff|data:\s*\[DONE\]\s*$/gi;

/** Reads the body of an answer that is not an event stream: one JSON value, or one on each line. */
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
    if (this.#length > MAX_BODY) throw new AnswerTooLarge('an answer', MAX_BODY);
    this.#chunks.push(chunk);
  }

  get held(): number {
    return this.#length + this.#answer.held;
  }

  end(events: ModelEvent[]): void {
    const [first] = this.#chunks;
    const body = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    const text = body.toString();
    const value = parseJson(text) ?? parseJson(text.replace(ADDITIONS, ''));
    if (value === undefined) this.#readLines(body, text, events);
    else {
      this.#answer.add(value, events);
      this.#answer.end('body', events);
    }
  }

  interrupt(failure: Error): void {
    throw failure;
  }

  /** Some servers send one chunk on each line. */
  #readLines(body: Buffer, text: string, events: ModelEvent[]): void {
    const stream = new EventStream(this.#answer, this.#failures);
    const read: ModelEvent[] = [];
    stream.read(body, read);
    if (!this.#answer.hasBegun) throw this.#failures.unreadable('an answer that is not JSON', { text });
    stream.end(read);
    events.push(...read);
  }
}
