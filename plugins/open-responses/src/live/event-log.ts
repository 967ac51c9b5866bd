import { isExtension } from '../events/json-text.js';

/** Events that are kept for readers that come back. */
const MAX_EVENTS = 2_000;
/** Bytes of them. Sizes are approximate: UTF-16 code units. */
const MAX_BYTES = 1024 * 1024;
/** Bytes that a reader may be behind before the writer waits. */
const MAX_UNREAD = 64 * 1024;
/** Bytes that a reader takes at once, unless a single event is larger. */
const MAX_BATCH = 64 * 1024;

/**
 * The events of one response, for any number of readers. Every event is written once, and is in
 * memory once: readers only hold positions, and may join at any event that is still kept. A slow
 * reader makes the writer wait until it leaves.
 */
export class EventLog {
  readonly #keepsRead: boolean;
  readonly #onReaders: () => void;
  readonly #readers = new Set<EventReader>();
  readonly #events: string[] = [];
  /** The sequence number of the oldest event. */
  #first = 0;
  /** Bytes of the events that are kept. */
  #bytes = 0;
  #limit = MAX_UNREAD;
  /** Settles when there is something new for readers. */
  #arrival: PromiseWithResolvers<void> | undefined;
  /** Settles when the writer may continue. */
  #room: PromiseWithResolvers<void> | undefined;
  #ended = false;

  /**
   * @param keepsRead whether events are kept for readers that come back.
   * @param onReaders called when the first reader has joined, or the last one has left.
   */
  constructor(keepsRead: boolean, onReaders: () => void) {
    this.#keepsRead = keepsRead;
    this.#onReaders = onReaders;
  }

  /** The sequence number of the oldest event that is kept. */
  get first(): number {
    return this.#first;
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

  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Writes events. If it returns a promise, the writer must wait for it. */
  write(events: readonly string[]): Promise<void> | undefined {
    if (this.#ended || events.length === 0) return undefined;
    let size = 0;
    for (const event of events) {
      this.#events.push(event);
      size += event.length;
    }
    this.#bytes += size;
    for (const reader of this.#readers) reader.unread += size;
    this.#wakeReaders();
    this.#trim();
    if (!this.#isBehind) return undefined;
    this.#room ??= Promise.withResolvers(); // one for all writes that meet a slow reader
    return this.#room.promise;
  }

  /** Removes the limit of what readers may be behind: the writer no longer waits. */
  removeLimit(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#wakeWriter();
  }

  /** Ends the log. Readers still receive what is kept. */
  close(): void {
    this.#ended = true;
    this.#wakeReaders();
  }

  /**
   * Adds a reader of the events from a sequence number on.
   *
   * @param extensions whether it receives `svc:` events.
   * @returns undefined if the first of them is no longer kept, or was not written yet.
   */
  join(from: number, extensions: boolean): EventReader | undefined {
    if (from < this.#first || from > this.end) return undefined;
    const reader = new EventReader(this, from, extensions);
    for (const event of this.#events.slice(from - this.#first)) reader.unread += event.length;
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#onReaders();
    return reader;
  }

  /** Takes the next events for a reader: as many as it takes at once. */
  take(reader: EventReader): readonly string[] {
    const start = reader.position - this.#first;
    let end = start;
    let bytes = 0;
    while (end < this.#events.length && (end === start || bytes < MAX_BATCH)) bytes += this.#events[end++]?.length ?? 0;
    const events = this.#events.slice(start, end);
    reader.position += events.length;
    reader.unread -= bytes;
    this.#moved();
    return events;
  }

  /** Resolves when there is something new, or a reader has left. */
  arrival(): Promise<void> {
    this.#arrival ??= Promise.withResolvers();
    return this.#arrival.promise;
  }

  /** A reader leaves. */
  leave(reader: EventReader): void {
    this.#readers.delete(reader);
    this.#wakeReaders();
    this.#moved();
    if (!this.isRead) this.#onReaders();
  }

  #moved(): void {
    this.#trim();
    if (!this.#isBehind) this.#wakeWriter();
  }

  /** Whether a reader is so far behind that the writer waits. */
  get #isBehind(): boolean {
    for (const { unread } of this.#readers) if (unread > this.#limit) return true;
    return false;
  }

  #wakeReaders(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  #wakeWriter(): void {
    this.#room?.resolve();
    this.#room = undefined;
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

/** A position in the events of a response. A reader that falls behind makes the response wait. */
export class EventReader {
  /** The sequence number of the next event. */
  position: number;
  /** Bytes of the events that it has not taken. */
  unread = 0;
  readonly #log: EventLog;
  readonly #extensions: boolean;
  #hasLeft = false;

  constructor(log: EventLog, position: number, extensions: boolean) {
    this.#log = log;
    this.position = position;
    this.#extensions = extensions;
  }

  /** Whether there is nothing more to read. */
  get isOver(): boolean {
    return this.#hasLeft || (this.#log.hasEnded && this.position === this.#log.end);
  }

  /**
   * Resolves with the events that are there, at least one and about 64 KiB at most; with undefined
   * at the end, or when it has left.
   */
  async next(): Promise<readonly string[] | undefined> {
    while (!this.isOver) {
      if (this.position === this.#log.end) await this.#log.arrival();
      const taken = this.#hasLeft ? [] : this.#log.take(this);
      const events = this.#extensions ? taken : taken.filter((event) => !isExtension(event));
      if (events.length > 0) return events;
    }
    return undefined;
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#log.leave(this);
  }
}
