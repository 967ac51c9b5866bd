import { StringDecoder } from 'node:string_decoder';
import { AnswerTooLarge } from '../failure/answer-too-large.js';

const BYTE_ORDER_MARK = 0xfeff;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const D = 100;
const A = 97;
const T = 116;

/** Receives the data of one event: a slice that keeps the whole read in memory. */
type EventSink = (data: string) => void;

/** Receives a line that is neither a `data` field nor blank nor a comment. */
type LineSink = (line: string) => void;

/**
 * Finds the events in a stream of server-sent events (WHATWG HTML, section 9.2), however the reads
 * of the socket cut it. Each read is decoded as a whole, and events are slices of it: an event that
 * arrives in one read is not copied.
 *
 * A stream consists of lines; a blank line ends an event. `data` fields are collected here,
 * comments skipped, and all other lines passed on. Lines end in LF or CR LF. A lone CR, which the
 * specification allows too, does not end a line: no model server writes it.
 */
export class SseScanner {
  readonly #sink: EventSink;
  readonly #lineSink: LineSink;
  readonly #limit: number;
  readonly #decoder = new StringDecoder('utf8');

  #isFirst = true;
  /** The beginning of a line whose end has not arrived. */
  #unfinished = '';
  /** The `data` lines of the unfinished event, joined by newlines; undefined before the first. */
  #data: string | undefined;
  /** Bytes kept of the unfinished event. */
  #buffered = 0;

  /** @param limit largest event in bytes. */
  constructor(sink: EventSink, lineSink: LineSink, limit: number) {
    this.#sink = sink;
    this.#lineSink = lineSink;
    this.#limit = limit;
  }

  /** Bytes kept of the unfinished event. */
  get buffered(): number {
    return this.#buffered;
  }

  /**
   * Reads one piece of the stream.
   *
   * @throws AnswerTooLarge, and what the sinks throw; discard the scanner then.
   */
  read(chunk: Buffer): void {
    const text = this.#decoder.write(chunk);
    let start = 0;
    if (this.#isFirst && text !== '') {
      this.#isFirst = false;
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) start = 1;
    }
    /** Where the unfinished event begins in this read. */
    let kept = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      if (this.#unfinished === '') this.#takeLine(text, start, end);
      else this.#finishLine(text.slice(start, end));
      start = end + 1;
      if (this.#data === undefined) kept = start;
    }
    this.#unfinished += text.slice(start);
    this.#buffered = kept === 0 ? this.#buffered + chunk.length : Buffer.byteLength(text.slice(kept));
    if (this.#buffered > this.#limit) throw new AnswerTooLarge('an event', this.#limit);
  }

  /** Ends the stream. Returns the data of an event without its blank line: perhaps cut. */
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

  /** @param end position of the line's LF. */
  #takeLine(text: string, start: number, end: number): void {
    const stop = end > start && text.charCodeAt(end - 1) === CR ? end - 1 : end;
    if (stop === start) {
      this.#closeEvent();
      return;
    }
    if (!isData(text, start, stop)) {
      if (text.charCodeAt(start) !== COLON) this.#lineSink(text.slice(start, stop));
      return;
    }
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

/** Whether a line is a `data` field. A line without a colon is a field without a value. */
function isData(text: string, start: number, end: number): boolean {
  return (
    text.charCodeAt(start) === D &&
    text.charCodeAt(start + 1) === A &&
    text.charCodeAt(start + 2) === T &&
    text.charCodeAt(start + 3) === A &&
    (start + 4 === end || (start + 4 < end && text.charCodeAt(start + 4) === COLON))
  );
}
