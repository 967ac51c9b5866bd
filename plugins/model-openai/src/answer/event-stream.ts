import type { ModelEvent } from '@plugboard/kernel';
import { findError } from '../failure/error-object.js';
import type { Failures } from '../failure/failures.js';
import { isObject } from '../json/json.js';
import { parseJson, splitJson } from '../json/split-json.js';
import type { AnswerParser, Ending } from './answer-parser.js';
import type { BodyReader } from './body-reader.js';
import { ChunkTemplate } from './chunk-template.js';
import { EscapedText } from './escaped-text.js';
import { SseScanner } from './sse-scanner.js';

/** Bytes of an event. */
const MAX_EVENT = 16 * 2 ** 20;

/** Templates in a row without a match, after which the rest of the stream is parsed. */
const MAX_UNUSED_TEMPLATES = 4;

/** Characters of `[DONE]` with blanks around it. */
const MAX_DONE_LENGTH = 64;
const DONE = /^\s*\[DONE\]\s*$/i;

/** Data that only keeps the connection alive: a comment in the wrong place, or a single word. */
const KEEP_ALIVE = /^\s*(:|(ping|pong|keep-?alive|heartbeat)\s*$|$)/i;

/** Characters of bare JSON that may come in several lines. */
const MAX_BARE_JSON = 16_384;

/** Reads the body of a streamed answer. */
export class EventStream implements BodyReader {
  readonly #answer: AnswerParser;
  readonly #failures: Failures;
  readonly #scanner = new SseScanner(
    (data) => this.#take(data),
    (line) => this.#takeLine(line),
    MAX_EVENT,
  );
  #template: ChunkTemplate | undefined;
  #unusedTemplates = 0;
  /** The list that the current read appends to. */
  #events: ModelEvent[] = [];
  #isDone = false;
  /** Whether the next event has the name `error`. */
  #isError = false;
  /** Lines of bare JSON that is not complete, or the first unreadable line. */
  #stray: string | undefined;
  /** Whether the bare JSON is longer than what is read. Further lines of it are skipped. */
  #isStrayTooLong = false;

  constructor(answer: AnswerParser, failures: Failures) {
    this.#answer = answer;
    this.#failures = failures;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get held(): number {
    return this.#scanner.buffered + this.#answer.held;
  }

  read(chunk: Buffer, events: ModelEvent[]): void {
    this.#events = events;
    const from = events.length;
    const size = this.#scanner.buffered + chunk.length;
    this.#scanner.read(chunk);
    copySlices(events, from, size);
  }

  end(events: ModelEvent[]): void {
    if (this.#isDone) return;
    this.#events = events;
    // An event without its blank line may be complete: some servers omit the line, at least after
    // `[DONE]`.
    const rest = this.#scanner.end() ?? '';
    const lines = parseJson(rest) === undefined ? rest.split('\n') : [rest];
    const last = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
    if (isDone(last) || parseJson(last) !== undefined) this.#take(last);
    if (!this.#isDone) this.#close('cut');
  }

  /** After the finish reason, at most the usage is missing. */
  interrupt(failure: Error, events: ModelEvent[]): void {
    if (!this.#answer.isFinished) throw failure;
    this.#events = events;
    this.#close('cut');
  }

  #take(data: string): void {
    if (this.#isDone) return;
    const text = this.#isError || this.#answer.isMidCharacter ? undefined : this.#template?.match(data);
    if (text) {
      this.#unusedTemplates = 0;
      this.#events.push(text);
    } else if (isDone(data)) this.#close('done');
    else this.#parse(data);
  }

  #parse(data: string): void {
    const chunk = parseJson(data);
    if (this.#isError) throw this.#failures.reported(errorIn(chunk) ?? data);
    if (chunk === undefined) {
      this.#recover(data);
      return;
    }
    const wasMidCharacter = this.#answer.isMidCharacter;
    const text = this.#answer.add(chunk, this.#events);
    if (text === undefined || this.#unusedTemplates >= MAX_UNUSED_TEMPLATES) return;
    // The template still fits the chunks that split no character.
    if (wasMidCharacter || this.#answer.isMidCharacter) return;
    this.#unusedTemplates += 1;
    this.#template = ChunkTemplate.derive(data, text);
  }

  /** Reads data that is not one JSON value. */
  #recover(data: string): void {
    if (KEEP_ALIVE.test(data)) return;
    const [prefix] = /^(?:\s*data:)+/.exec(data) ?? [];
    // Several events without a blank line between them, or without any separator.
    const parts = prefix ? [data.slice(prefix.length)] : data.includes('\n') ? data.split('\n') : splitJson(data);
    if (parts !== undefined) {
      const error = parts.map(parseJson).find((part) => isObject(part) && findError(part, undefined) !== undefined);
      if (error !== undefined) this.#answer.add(error, this.#events);
      for (const part of parts) this.#take(part);
      return;
    }
    // After the finish reason, nothing that is missing matters.
    if (this.#answer.isFinished) return;
    throw this.#failures.unreadable('an event that is not JSON', { text: data, hasBegun: this.#answer.hasBegun });
  }

  /** Reads a line that is neither `data` nor blank. */
  #takeLine(line: string): void {
    if (this.#isDone) return;
    const [, field, value = ''] = /^\s*(\w*):(.*)$/s.exec(line) ?? [];
    if (field === 'event') this.#isError = value.trim() === 'error';
    // llama.cpp, until late 2025.
    else if (field === 'error') throw this.#failures.reported(errorIn(parseJson(value)) ?? value.trim());
    else if (field === 'data') this.#take(value);
    else if (field === undefined || !/^(|id|retry)$/.test(field)) this.#takeStray(line);
  }

  /** Reads a line outside of the event stream's format: bare JSON, perhaps in several lines. */
  #takeStray(line: string): void {
    if (this.#isStrayTooLong) return;
    const text = this.#stray?.startsWith('{') ? `${this.#stray}\n${line}` : line.trimStart();
    const value = /^[[{].*[\]}]\s*$/s.test(text) ? parseJson(text) : undefined;
    if (value === undefined) {
      if (text.length > MAX_BARE_JSON) this.#isStrayTooLong = true;
      else if (this.#stray === undefined || this.#stray.startsWith('{')) this.#stray = text;
      return;
    }
    this.#stray = undefined;
    this.#answer.add(value, this.#events);
  }

  #close(ending: Ending): void {
    this.#isDone = true;
    this.#answer.end(ending, this.#events, this.#stray);
  }
}

function isDone(data: string): boolean {
  return data.length < MAX_DONE_LENGTH && DONE.test(data);
}

/** The error object inside a value, or the value itself. */
function errorIn(value: unknown): unknown {
  return isObject(value) && value.error ? value.error : (value ?? undefined);
}

/** Characters below which V8 copies a part of a text, and above which it keeps the whole. */
const MIN_SLICE = 13;
/** How many times its own size a text may keep in memory. */
const MAX_KEPT = 4;

/**
 * Copies the texts of a read that are slices of it, if they are a small part of it: each would keep
 * all of it in memory, as long as the answer lasts (S-75).
 *
 * @param from index of the first event of the read.
 * @param size of the read.
 */
function copySlices(events: ModelEvent[], from: number, size: number): void {
  let sliced = 0;
  for (let i = from; i < events.length; i++) {
    const event = events[i];
    if (event instanceof EscapedText && event.json.length >= MIN_SLICE) sliced += event.json.length;
  }
  if (sliced === 0 || size <= MAX_KEPT * sliced) return;
  for (let i = from; i < events.length; i++) {
    const event = events[i];
    if (event instanceof EscapedText && event.json.length >= MIN_SLICE) events[i] = event.copy();
  }
}
