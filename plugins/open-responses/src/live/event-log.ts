import { isExtension } from '../events/json-text.js';

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

/**
 * The events of one response, for any number of readers. Every event is in memory once: readers
 * only hold positions, and may join at any event that is still kept. A slow reader makes the writer
 * wait until it leaves.
 */
export class EventLog {
  readonly #onReaderLeft: () => void;
  readonly #readers = new Set<EventReader>();
  readonly #events: string[] = [];
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
    return this.#first + this.#events.length;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Bytes of the events that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of readers. */
  get readers(): number {
    return this.#readers.size;
  }

  /** Whether a reader is so far behind that text should be written in fewer events. */
  get isPressed(): boolean {
    for (const reader of this.#readers) if (reader.isPressed || this.#written - reader.passed > PRESSED_AT) return true;
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
    for (const reader of this.#readers) reader.wake();
  }

  /**
   * Adds a reader of the events from a sequence number on.
   *
   * @param extensions whether it receives `svc:` events.
   * @returns undefined if the first of them is no longer kept, or was not written yet.
   */
  join(from: number, extensions: boolean): EventReader | undefined {
    if (from < this.#first || from > this.end) return undefined;
    let unread = 0;
    for (let index = from - this.#first; index < this.#events.length; index++) unread += this.#events[index]?.length ?? 0;
    const reader = new EventReader(this, { position: from, passed: this.#written - unread }, extensions);
    this.#readers.add(reader);
    return reader;
  }

  /** The events from a sequence number on: as many as a reader takes at once. */
  from(sequence: number): readonly string[] {
    const start = sequence - this.#first;
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
    for (const { passed } of this.#readers) if (this.#written - passed > bytes) return true;
    return false;
  }

  #release(): void {
    this.#wait?.resolve();
    this.#wait = undefined;
  }

  /** Drops the oldest events beyond the limits, except those that a reader still has to take. */
  #trim(): void {
    let needed = this.end;
    for (const { position } of this.#readers) needed = Math.min(needed, position);
    while (this.#first < needed && this.#isFull) {
      this.#bytes -= this.#events.shift()?.length ?? 0;
      this.#first++;
    }
  }

  get #isFull(): boolean {
    return !this.#keepsRead || this.#bytes > MAX_BYTES || this.#events.length > MAX_EVENTS;
  }
}

/**
 * A position in the events of a response, and what is read from there. It buffers nothing itself: a
 * reader that falls behind makes the response wait.
 */
export class EventReader {
  /**
   * Set by a reader whose own destination is filling up. Text that arrives together then becomes
   * one event.
   */
  isPressed = false;
  readonly #log: EventLog;
  readonly #extensions: boolean;
  #position: number;
  #passed: number;
  /** Resolves the read that waits. */
  #pending: ((events: readonly string[] | undefined) => void) | undefined;
  #hasLeft = false;

  /** @param extensions whether it receives `svc:` events. */
  constructor(log: EventLog, start: Pick<EventReader, 'position' | 'passed'>, extensions: boolean) {
    this.#log = log;
    this.#position = start.position;
    this.#passed = start.passed;
    this.#extensions = extensions;
  }

  /** The sequence number of the next event. */
  get position(): number {
    return this.#position;
  }

  /** Bytes of all events before it. */
  get passed(): number {
    return this.#passed;
  }

  /** Whether there is nothing more to read. */
  get isOver(): boolean {
    return this.#hasLeft || (this.#log.hasEnded && this.#position === this.#log.end);
  }

  /**
   * Resolves with the events that are there, at least one and about 64 KiB at most; with undefined
   * at the end. One call at a time.
   */
  next(): Promise<readonly string[] | undefined> {
    const events = this.#take();
    if (events.length > 0 || this.isOver) return Promise.resolve(events.length > 0 ? events : undefined);
    return new Promise((resolve) => {
      this.#pending = resolve;
    });
  }

  /** Leaves: `next` returns nothing more. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.wake();
    this.#log.left(this);
  }

  /** There are new events, or there will be none. */
  wake(): void {
    const give = this.#pending;
    if (!give) return;
    const events = this.#take();
    if (events.length === 0 && !this.isOver) return;
    this.#pending = undefined;
    give(events.length > 0 ? events : undefined);
  }

  /** Takes events until it has some to give, or none are left. */
  #take(): readonly string[] {
    let given: readonly string[] = [];
    while (given.length === 0 && this.#position < this.#log.end && !this.#hasLeft) {
      const events = this.#log.from(this.#position);
      this.#position += events.length;
      for (const event of events) this.#passed += event.length;
      given = this.#extensions ? events : events.filter((event) => !isExtension(event));
    }
    if (given.length > 0) this.#log.progressed();
    return given;
  }
}
