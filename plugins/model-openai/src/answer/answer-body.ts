import type { ModelEvent } from '@plugboard/kernel';
import type { Failures } from '../failure/failures.js';
import type { AnswerParser } from './answer-parser.js';
import type { BodyReader } from './body-reader.js';
import { EventStream } from './event-stream.js';
import { JsonBody } from './json-body.js';

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const BRACKET = 0x5b;
const BRACE = 0x7b;
const LESS_THAN = 0x3c;

/**
 * Reads the body of an answer. Its first byte decides between JSON and an event stream. The content
 * type does not: servers send streams as `application/json`, JSON as `text/event-stream`, and
 * either as `text/plain`.
 */
export class AnswerBody implements BodyReader {
  readonly #answer: AnswerParser;
  readonly #failures: Failures;
  #reader: BodyReader | undefined;

  constructor(answer: AnswerParser, failures: Failures) {
    this.#answer = answer;
    this.#failures = failures;
  }

  get isDone(): boolean {
    return this.#reader?.isDone ?? false;
  }

  get held(): number {
    return this.#reader?.held ?? 0;
  }

  read(chunk: Buffer, events: ModelEvent[]): void {
    this.#reader ??= this.#readerFor(chunk);
    this.#reader?.read(chunk, events);
  }

  end(events: ModelEvent[]): void {
    if (this.#reader === undefined) throw this.#failures.empty();
    this.#reader.end(events);
  }

  interrupt(failure: Error, events: ModelEvent[]): void {
    if (this.#reader === undefined) throw failure;
    this.#reader.interrupt(failure, events);
  }

  #readerFor(chunk: Buffer): BodyReader | undefined {
    const first = chunk.find((byte) => !isBlank(byte));
    if (first === undefined) return undefined;
    if (first === LESS_THAN) throw this.#failures.unreadable('a page of HTML', { text: titleOf(chunk) });
    if (first === BRACE || first === BRACKET) return new JsonBody(this.#answer, this.#failures);
    return new EventStream(this.#answer, this.#failures);
  }
}

/** White space, or a byte of a byte order mark. */
function isBlank(byte: number): boolean {
  return byte <= 0x20 || BYTE_ORDER_MARK.includes(byte);
}

/** The title of a page, read by hand: an expression is slow without a closing tag (S-76). */
function titleOf(chunk: Buffer): string {
  const page = chunk.toString();
  const title = page.search(/<title/i);
  const open = title < 0 ? -1 : page.indexOf('>', title);
  if (open < 0) return '';
  const end = page.indexOf('<', open);
  return page.slice(open + 1, end < 0 ? page.length : end).trim();
}
