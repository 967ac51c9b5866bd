import { StringDecoder } from 'node:string_decoder';

const CR = 13;
const SPACE = 32;
const COLON = 58;
const D = 100;
const A = 97;
const T = 116;

/** Is given the data of one event. It is a slice of the read that it came in: whoever keeps it keeps all of that. */
export type EventSink = (data: string) => void;

/**
 * Finds the events in a stream of server-sent events (WHATWG HTML, section 9.2), however the reads of the socket cut it. A read is decoded
 * as a whole, and what is found in it is a slice of that: an event that came in one read is not copied.
 *
 * A stream is lines; a blank one ends an event. Of the fields only `data` means something here; comments, `event`, `id` and `retry` are passed
 * over. Lines end in LF or CR LF. A lone CR, which the specification allows too, does not end one: no model server writes it.
 */
export class SseScanner {
  readonly #sink: EventSink;
  readonly #limit: number;
  readonly #decoder = new StringDecoder('utf8');

  /** What has come of a line whose end has not. */
  #unfinished = '';
  /** The values of the `data` lines of the event whose end has not come, with a newline between each two; undefined before the first. */
  #data: string | undefined;
  /** How many bytes are held of the event whose end has not come. */
  #held = 0;

  /** @param limit bytes that may be held of an event. */
  constructor(sink: EventSink, limit: number) {
    this.#sink = sink;
    this.#limit = limit;
  }

  /** Takes what one read brought. @throws EventTooLarge, and whatever the sink throws; the scanner is of no use then. */
  read(chunk: Buffer): void {
    const text = this.#decoder.write(chunk);
    let start = 0;
    /** Where what is held of this read begins. */
    let held = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      if (this.#unfinished === '') this.#takeLine(text, start, end);
      else this.#finishLine(text.slice(start, end));
      start = end + 1;
      if (this.#data === undefined) held = start;
    }
    this.#unfinished += text.slice(start);
    this.#held = held === 0 ? this.#held + chunk.length : Buffer.byteLength(text.slice(held));
    if (this.#held > this.#limit) throw new EventTooLarge(this.#limit);
  }

  /** Nothing more will come. Returns the data of an event that no blank line ended, if there is one: it may be whole, or a torn-off half. */
  end(): string | undefined {
    const rest = this.#decoder.end();
    if (this.#unfinished + rest !== '') this.#finishLine(rest);
    return this.#data;
  }

  #finishLine(rest: string): void {
    const line = this.#unfinished + rest;
    this.#unfinished = '';
    this.#takeLine(line, 0, line.length);
  }

  /** @param end where the line's LF stands. */
  #takeLine(text: string, start: number, end: number): void {
    const stop = end > start && text.charCodeAt(end - 1) === CR ? end - 1 : end;
    if (stop === start) {
      this.#closeEvent();
      return;
    }
    if (!isData(text, start, stop)) return;
    const colon = start + 'data'.length;
    const value = text.slice(text.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1, stop);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #closeEvent(): void {
    const data = this.#data;
    if (data === undefined) return;
    this.#data = undefined;
    if (data !== '') this.#sink(data);
  }
}

/** An event, or a line, has more bytes than it may. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge';

  constructor(readonly limit: number) {
    super(`an event has more than ${limit} bytes`);
  }
}

/** Whether the line is a field of the name `data`. A line without a colon is a name alone. */
function isData(text: string, start: number, end: number): boolean {
  return (
    text.charCodeAt(start) === D &&
    text.charCodeAt(start + 1) === A &&
    text.charCodeAt(start + 2) === T &&
    text.charCodeAt(start + 3) === A &&
    (start + 4 === end || (start + 4 < end && text.charCodeAt(start + 4) === COLON))
  );
}
