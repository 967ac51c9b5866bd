import type { EventBuffer } from './event-buffer.js';

/**
 * Reads the events of a response from some number on, as they come. It holds no events itself: a
 * reader that falls behind makes the response wait, and costs no memory.
 */
export class EventReader {
  readonly #buffer: EventBuffer;
  readonly #onProgress: () => void;
  readonly #onLeave: (reader: EventReader) => void;
  #next: number;
  #wanted: ((events: readonly string[] | undefined) => void) | undefined;
  #ended = false;
  #left = false;
  /**
   * Set by a reader whose own destination is filling up. Text that arrives together then becomes
   * one event.
   */
  pressed = false;

  constructor(
    buffer: EventBuffer,
    from: number,
    watcher: {
      /** Called when the reader has taken events. */
      readonly onProgress: () => void;
      /** Called once, when the reader leaves, before the end or after it. */
      readonly onLeave: (reader: EventReader) => void;
    },
  ) {
    this.#buffer = buffer;
    this.#next = from;
    this.#onProgress = watcher.onProgress;
    this.#onLeave = watcher.onLeave;
  }

  /** How many events it has not taken yet. */
  get lag(): number {
    return this.#buffer.end - this.#next;
  }

  /** The first event that it has not taken. */
  get position(): number {
    return this.#next;
  }

  /** Characters of the events that it has not taken yet. */
  get lagSize(): number {
    return this.lag === 0 ? 0 : this.#buffer.sizeFrom(this.#next);
  }

  /** Whether it has taken the last event. */
  get isOver(): boolean {
    return this.#ended && this.lag === 0;
  }

  /**
   * The events that are there, at least one and about 64 KiB at most; undefined at the end. One
   * call at a time.
   */
  next(): Promise<readonly string[] | undefined> {
    if (this.lag > 0) return Promise.resolve(this.#take());
    if (this.#ended) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#wanted = resolve;
    });
  }

  /** The reader leaves; `next` returns nothing more. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#finish();
    this.#next = this.#buffer.end;
    this.#onLeave(this);
  }

  /** There are new events. */
  wake(): void {
    const give = this.#wanted;
    if (!give) return;
    this.#wanted = undefined;
    give(this.#take());
  }

  /** There will be no more events. */
  end(): void {
    this.#finish();
  }

  #take(): readonly string[] {
    const events = this.#buffer.from(this.#next);
    this.#next += events.length;
    this.#onProgress();
    return events;
  }

  #finish(): void {
    this.#ended = true;
    this.#wanted?.(undefined);
    this.#wanted = undefined;
  }
}
