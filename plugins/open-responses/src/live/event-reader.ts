import { isExtension } from '../events/json-text.js';

/** What a reader needs of its log. */
interface ReadableLog {
  /** The sequence number that the next event will have. */
  readonly end: number;
  /** Bytes of all events that were written. */
  readonly written: number;
  /** The events from a sequence number on: all of them, or as many as a reader takes at once. */
  from(sequence: number): readonly string[];
  /** The reader has taken events. */
  progressed(): void;
  /** The reader has left. */
  left(reader: EventReader): void;
}

/**
 * Reads the events of a response from some event on, as they are written. It buffers nothing
 * itself: a reader that falls behind makes the response wait.
 */
export class EventReader {
  readonly #log: ReadableLog;
  readonly #extensions: boolean;
  /** The sequence number of the next event. */
  #position: number;
  /** Bytes of all events before the next one. */
  #bytes: number;
  #wanted: ((events: readonly string[] | undefined) => void) | undefined;
  #ended = false;
  #left = false;
  /**
   * Set by a reader whose own destination is filling up. Text that arrives together then becomes
   * one event.
   */
  isPressed = false;

  /**
   * @param start the sequence number of the first event to read, and the bytes of all before it.
   * @param extensions whether it receives `svc:` events.
   */
  constructor(log: ReadableLog, start: { readonly position: number; readonly bytes: number }, extensions: boolean) {
    this.#log = log;
    this.#position = start.position;
    this.#bytes = start.bytes;
    this.#extensions = extensions;
  }

  /** The sequence number of the next event. */
  get position(): number {
    return this.#position;
  }

  /** Bytes of the events that it has not taken yet. */
  get unread(): number {
    return this.#left ? 0 : this.#log.written - this.#bytes;
  }

  /** Whether it has taken the last event. */
  get isOver(): boolean {
    return this.#ended && this.#position === this.#log.end;
  }

  /**
   * Resolves with the events that are there, at least one and about 64 KiB at most; with undefined
   * at the end. One call at a time.
   */
  next(): Promise<readonly string[] | undefined> {
    const events = this.#take();
    if (events.length > 0) return Promise.resolve(events);
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#wanted = resolve;
    });
  }

  /** Leaves: `next` returns nothing more. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#position = this.#log.end;
    this.end();
    this.#log.left(this);
  }

  /** There are new events. */
  wake(): void {
    if (!this.#wanted) return;
    const events = this.#take();
    if (events.length > 0) this.#give(events);
  }

  /** There will be no more events. */
  end(): void {
    this.#ended = true;
    this.#give(undefined);
  }

  #give(events: readonly string[] | undefined): void {
    this.#wanted?.(events);
    this.#wanted = undefined;
  }

  /** Takes events until it has some to give, or none are left. */
  #take(): readonly string[] {
    let given: readonly string[] = [];
    while (given.length === 0 && this.#position < this.#log.end && !this.#left) {
      const events = this.#log.from(this.#position);
      this.#position += events.length;
      for (const event of events) this.#bytes += event.length;
      given = this.#extensions ? events : events.filter((event) => !isExtension(event));
    }
    if (given.length > 0) this.#log.progressed();
    return given;
  }
}
