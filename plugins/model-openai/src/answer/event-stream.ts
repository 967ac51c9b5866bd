import type { ModelEvent } from '@plugboard/kernel';
import type { Failures } from '../failure/failures.js';
import type { AnswerParser } from './answer-parser.js';
import type { BodyReader } from './body-reader.js';
import { ChunkTemplate } from './chunk-template.js';
import { EventTooLarge, SseScanner } from './sse-scanner.js';

/** Largest event in bytes. */
export const EVENT_LIMIT = 16 * 2 ** 20;

/** After this many templates in a row that matched nothing, the rest of the stream is parsed. */
const MAX_UNUSED_TEMPLATES = 4;

const DONE = '[DONE]';

/** Reads the body of a streamed answer. */
export class EventStream implements BodyReader {
  readonly #answer: AnswerParser;
  readonly #failures: Failures;
  readonly #scanner = new SseScanner((data) => this.#take(data), EVENT_LIMIT);
  #template: ChunkTemplate | undefined;
  #unusedTemplates = 0;
  /** The list that the current read appends to. */
  #events: ModelEvent[] = [];
  #isDone = false;

  constructor(answer: AnswerParser, failures: Failures) {
    this.#answer = answer;
    this.#failures = failures;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  read(chunk: Buffer, events: ModelEvent[]): void {
    this.#events = events;
    try {
      this.#scanner.read(chunk);
    } catch (error) {
      throw error instanceof EventTooLarge ? this.#failures.tooLarge('an event', error.limit) : error;
    }
  }

  end(events: ModelEvent[]): void {
    if (this.#isDone) return;
    this.#events = events;
    // An event without its blank line may be complete: some servers omit the line after `[DONE]`.
    const rest = this.#scanner.end();
    if (rest && (rest === DONE || isJson(rest))) this.#take(rest);
    if (!this.#isDone) this.#close();
  }

  /** After the finish reason, at most the usage is missing. */
  interrupt(failure: Error, events: ModelEvent[]): void {
    if (!this.#answer.isFinished) throw failure;
    this.#events = events;
    this.#close();
  }

  #take(data: string): void {
    if (this.#isDone) return;
    const text = this.#template?.match(data);
    if (text) {
      this.#unusedTemplates = 0;
      this.#events.push(text);
    } else if (data === DONE) this.#close();
    else this.#parse(data);
  }

  #parse(data: string): void {
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch (error) {
      throw this.#failures.unreadable('an event that is not JSON', error);
    }
    const text = this.#answer.add(chunk, this.#events);
    if (text === undefined || this.#unusedTemplates >= MAX_UNUSED_TEMPLATES) return;
    this.#unusedTemplates += 1;
    this.#template = ChunkTemplate.derive(data, text);
  }

  #close(): void {
    this.#isDone = true;
    this.#answer.end(false, this.#events);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
