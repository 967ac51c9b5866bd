import { EventReader } from './event-reader.js';

/** Events that are kept for readers that come back. */
const MAX_EVENTS = 2_000;
/** Bytes of them. Sizes are approximate: UTF-16 code units. */
const MAX_BYTES = 1024 * 1024;
/** Bytes that a reader may be behind before the writer waits. */
const MAX_UNREAD = 64 * 1024;
/** Bytes behind which a waiting writer continues. */
const RESUME_AT = 16 * 1024;
/** Bytes behind which text should be written in fewer events. */
const PRESSED_AT = 4 * 1024;
/** Bytes that a reader takes at once, unless a single event is larger. */
const MAX_BATCH = 64 * 1024;
/** Dropped events leave a gap at the front of the array, which is closed when it is this long. */
const MAX_GAP = 512;

/**
 * The events of one response, for any number of readers, which may join at any event that is still
 * kept. Every event is in memory once, however many readers there are. A slow reader makes the
 * writer wait until it leaves.
 */
export class EventLog {
  readonly #onReaderLeft: () => void;
  readonly #readers = new Set<EventReader>();
  #events: string[] = [];
  /** The index of the oldest event in the array. */
  #start = 0;
  /** The sequence number of the oldest event. */
  #first = 0;
  /** Bytes of the events that are kept. */
  #bytes = 0;
  /** Bytes of all events that were written. */
  #written = 0;
  #limit = MAX_UNREAD;
  #keepsRead = true;
  /** Settles when the writer may continue. */
  #wait: PromiseWithResolvers<void> | undefined;
  #ended = false;

  /** @param onReaderLeft called after a reader has left, before the end or after it. */
  constructor(onReaderLeft: () => void) {
    this.#onReaderLeft = onReaderLeft;
  }

  /** The sequence number that the next event will have. */
  get end(): number {
    return this.#first + this.#events.length - this.#start;
  }

  /** Bytes of the events that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of all events that were written. */
  get written(): number {
    return this.#written;
  }

  /** Number of readers. */
  get readers(): number {
    return this.#readers.size;
  }

  /** Whether a reader is so far behind that text should be written in fewer events. */
  get isPressed(): boolean {
    for (const reader of this.#readers) if (reader.isPressed || reader.unread > PRESSED_AT) return true;
    return false;
  }

  /** Writes events. If it returns a promise, the writer must wait for it. */
  write(events: readonly string[]): Promise<void> | undefined {
    if (this.#ended || events.length === 0) return undefined;
    for (const event of events) {
      this.#events.push(event);
      this.#bytes += event.length;
      this.#written += event.length;
    }
    for (const reader of this.#readers) reader.wake();
    this.#trim();
    if (!this.#isBehind(this.#limit)) return undefined;
    this.#wait ??= Promise.withResolvers(); // one for all writes that meet a slow reader
    return this.#wait.promise;
  }

  /** Removes the limit of what readers may be behind: the writer no longer waits. */
  removeLimit(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#release();
  }

  /** From now on, keeps only events that a reader has not taken yet. */
  dropRead(): void {
    this.#keepsRead = false;
  }

  /** Ends the log. Readers still receive what is kept. */
  close(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end();
  }

  /**
   * Adds a reader of the events from a sequence number on.
   *
   * @param extensions whether it receives `svc:` events.
   * @returns undefined if the first of them is no longer kept, or was not written yet.
   */
  join(from: number, extensions: boolean): EventReader | undefined {
    if (from < this.#first || from > this.end) return undefined;
    let behind = 0;
    for (let i = this.#start + from - this.#first; i < this.#events.length; i++) behind += this.#events[i]?.length ?? 0;
    const reader = new EventReader(this, { position: from, bytes: this.#written - behind }, extensions);
    this.#readers.add(reader);
    if (this.#ended) reader.end();
    return reader;
  }

  /** The events from a sequence number on: all of them, or as many as a reader takes at once. */
  from(sequence: number): readonly string[] {
    const start = this.#start + sequence - this.#first;
    if (this.#bytes <= MAX_BATCH) return this.#events.slice(start);
    let end = start;
    let bytes = 0;
    while (end < this.#events.length && (end === start || bytes < MAX_BATCH)) bytes += this.#events[end++]?.length ?? 0;
    return this.#events.slice(start, end);
  }

  /** A reader has taken events. */
  progressed(): void {
    this.#trim();
    if (this.#wait && !this.#isBehind(RESUME_AT)) this.#release();
  }

  /** A reader has left. */
  left(reader: EventReader): void {
    this.#readers.delete(reader);
    this.progressed();
    this.#onReaderLeft();
  }

  #isBehind(bytes: number): boolean {
    for (const reader of this.#readers) if (reader.unread > bytes) return true;
    return false;
  }

  #release(): void {
    this.#wait?.resolve();
    this.#wait = undefined;
  }

  /** Drops the oldest events beyond the limits, except those that a reader still has to take. */
  #trim(): void {
    let needed = this.end;
    for (const reader of this.#readers) needed = Math.min(needed, reader.position);
    while (this.#first < needed && this.#isFull) this.#drop();
  }

  get #isFull(): boolean {
    return !this.#keepsRead || this.#bytes > MAX_BYTES || this.#events.length - this.#start > MAX_EVENTS;
  }

  #drop(): void {
    this.#bytes -= this.#events[this.#start]?.length ?? 0;
    this.#events[this.#start] = '';
    this.#start++;
    this.#first++;
    if (this.#start < MAX_GAP) return;
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }
}
