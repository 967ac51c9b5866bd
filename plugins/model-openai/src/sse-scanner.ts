const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const D = 100;
const A = 97;
const T = 116;

const NOTHING: Buffer = Buffer.alloc(0);
const NEWLINE = Buffer.from('\n');

/**
 * Is given the data of one event: what lies from `start` up to, not including, `end`. The bytes are only lent: whoever keeps them keeps the
 * whole buffer, which is a read of the socket.
 */
export type EventSink = (bytes: Buffer, start: number, end: number) => void;

/**
 * Finds the events in a stream of server-sent events (WHATWG HTML, section 9.2), however the reads of the socket cut it. Works on bytes:
 * nothing is decoded, and an event that came in one read is not copied either.
 *
 * A stream is lines; a blank one ends an event. Of the fields only `data` means something here; comments, `event`, `id` and `retry` are passed
 * over. Lines end in LF or CR LF. A lone CR, which the specification allows too, does not end one: no model server writes it.
 */
export class SseScanner {
  readonly #sink: EventSink;
  readonly #limit: number;

  /** What has come of a line whose end has not. */
  #unfinished: Buffer[] = [];
  /** The last `data` line of the event whose end has not come: where its value lies. Nearly always there is only one. */
  #bytes = NOTHING;
  #start = 0;
  #end = 0;
  /** Whether there is a `data` line at all. */
  #hasData = false;
  /** The values of the `data` lines before it. */
  #earlier: Buffer[] = [];
  /** How many bytes are held of the event whose end has not come. */
  #held = 0;

  /** @param limit bytes that an event may have at most. */
  constructor(sink: EventSink, limit: number) {
    this.#sink = sink;
    this.#limit = limit;
  }

  /** Takes what one read brought. @throws EventTooLarge, and whatever the sink throws; the scanner is of no use then. */
  read(chunk: Buffer): void {
    let start = 0;
    if (this.#unfinished.length > 0) {
      const end = chunk.indexOf(LF);
      if (end < 0) {
        this.#hold(chunk);
        return;
      }
      const line = this.#finish(chunk.subarray(0, end));
      this.#takeLine(line, 0, line.length);
      start = end + 1;
    }
    while (start < chunk.length) {
      const end = chunk[start] === LF ? start : chunk.indexOf(LF, start);
      if (end < 0) {
        this.#hold(chunk.subarray(start));
        return;
      }
      this.#takeLine(chunk, start, end);
      start = end + 1;
    }
  }

  /** Nothing more will come. Returns the data of an event that no blank line ended, if there is one: it may be whole, or a torn-off half. */
  end(): Buffer | undefined {
    const line = this.#finish(NOTHING);
    if (line.length > 0) this.#takeLine(line, 0, line.length);
    return this.#hasData ? this.#join() : undefined;
  }

  #hold(part: Buffer): void {
    this.#count(part.length);
    this.#unfinished.push(part);
  }

  #finish(rest: Buffer): Buffer {
    if (this.#unfinished.length === 0) return rest;
    const line = Buffer.concat([...this.#unfinished, rest]);
    for (const part of this.#unfinished) this.#held -= part.length;
    this.#unfinished = [];
    return line;
  }

  /** @param end where the line's LF stands. */
  #takeLine(bytes: Buffer, start: number, end: number): void {
    const stop = end > start && bytes[end - 1] === CR ? end - 1 : end;
    if (stop === start) {
      this.#closeEvent();
      return;
    }
    if (!isData(bytes, start, stop)) return;
    this.#count(stop - start);
    if (this.#hasData) this.#earlier.push(this.#bytes.subarray(this.#start, this.#end));
    const value = start + 'data:'.length;
    this.#hasData = true;
    this.#bytes = bytes;
    this.#start = value < stop && bytes[value] === SPACE ? value + 1 : Math.min(value, stop);
    this.#end = stop;
  }

  #closeEvent(): void {
    if (!this.#hasData) return;
    let bytes = this.#bytes;
    let start = this.#start;
    let end = this.#end;
    if (this.#earlier.length > 0) {
      bytes = this.#join();
      start = 0;
      end = bytes.length;
    }
    this.#bytes = NOTHING;
    this.#hasData = false;
    this.#held = 0;
    if (end > start) this.#sink(bytes, start, end);
  }

  /** The values of all `data` lines, with a newline between each two. */
  #join(): Buffer {
    const parts: Buffer[] = [];
    for (const value of this.#earlier) parts.push(value, NEWLINE);
    parts.push(this.#bytes.subarray(this.#start, this.#end));
    this.#earlier = [];
    return Buffer.concat(parts);
  }

  #count(bytes: number): void {
    this.#held += bytes;
    if (this.#held > this.#limit) throw new EventTooLarge(this.#limit);
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
function isData(bytes: Buffer, start: number, end: number): boolean {
  return (
    bytes[start] === D &&
    bytes[start + 1] === A &&
    bytes[start + 2] === T &&
    bytes[start + 3] === A &&
    (start + 4 === end || (start + 4 < end && bytes[start + 4] === COLON))
  );
}
