import type { ModelEvent } from '@plugboard/kernel';
import type { Answer } from './answer.js';
import type { BodyReader } from './body-reader.js';
import type { Failures } from './failures.js';
import { EventTooLarge, SseScanner } from './sse-scanner.js';
import { Stencil } from './stencil.js';

/** Bytes of one event. */
export const EVENT_LIMIT = 16 * 2 ** 20;

/** How many stencils in a row may be cut in vain. A stream whose events all differ in more than their text is then parsed to its end. */
const VAIN_CUTS = 4;

const DONE = '[DONE]';

/** Reads the body of a streamed answer. */
export class EventStream implements BodyReader {
  readonly #answer: Answer;
  readonly #failures: Failures;
  readonly #scanner = new SseScanner((data) => this.#take(data), EVENT_LIMIT);
  #stencil: Stencil | undefined;
  #cutsInVain = 0;
  /** Where events go during a read. */
  #events: ModelEvent[] = [];
  #isDone = false;

  constructor(answer: Answer, failures: Failures) {
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
    // An event without its blank line may be whole: some servers leave that out behind `[DONE]`. Otherwise the stream was cut off in it.
    const rest = this.#scanner.end();
    if (rest && (rest === DONE || isJson(rest))) this.#take(rest);
    if (!this.#isDone) this.#close();
  }

  /** Once the model has said why it stopped, nothing is missing but perhaps the usage. */
  breakOff(failure: Error, events: ModelEvent[]): void {
    if (!this.#answer.isFinished) throw failure;
    this.#events = events;
    this.#close();
  }

  #take(data: string): void {
    if (this.#isDone) return;
    const text = this.#stencil?.read(data);
    if (text) {
      this.#cutsInVain = 0;
      this.#events.push(text);
    } else if (data === DONE) this.#close();
    else this.#parse(data);
  }

  #parse(data: string): void {
    let chunk: unknown;
    try {
      chunk = JSON.parse(data);
    } catch (error) {
      throw this.#failures.garbled('an event that is no JSON', error);
    }
    const text = this.#answer.add(chunk, this.#events);
    if (text === undefined || this.#cutsInVain >= VAIN_CUTS) return;
    this.#cutsInVain += 1;
    this.#stencil = Stencil.cut(data, text);
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
