/** Events that are kept for readers that come back. */
const MOST_EVENTS = 2_000;
/** The same in UTF-16 code units: 1 MiB of text that is mostly ASCII. */
const MOST_CHARACTERS = 1024 * 1024;
/** Events that a reader takes at once, in UTF-16 code units, unless a single one is longer. */
const LARGEST_BATCH = 64 * 1024;
/** Dropped events leave a gap at the front of the array, which is closed once it is this long. */
const LONGEST_GAP = 512;

/**
 * The newest events of one response, by their sequence numbers. When it is full, the oldest are
 * dropped.
 */
export class EventBuffer {
  #events: string[] = [];
  /** Where the oldest event is in the array. */
  #start = 0;
  /** The sequence number of the oldest event. */
  #first = 0;
  #size = 0;
  #keepsTaken = true;

  /** The number that the next event will have. */
  get end(): number {
    return this.#first + this.#events.length - this.#start;
  }

  /** Characters of all events that are kept. */
  get size(): number {
    return this.#size;
  }

  push(event: string): void {
    this.#events.push(event);
    this.#size += event.length;
  }

  /** From now on, keeps only events that a reader has not taken yet. */
  dropTaken(): void {
    this.#keepsTaken = false;
  }

  /**
   * Drops the oldest events while there are too many.
   *
   * @param needed the first event that must stay, because a reader has not taken it yet.
   */
  trim(needed: number): void {
    while (this.#first < needed && this.#isFull()) this.#drop();
  }

  /**
   * Whether the event with this number, and all after it, are still kept. The next one to come
   * counts as kept.
   */
  has(sequence: number): boolean {
    return sequence >= this.#first && sequence <= this.end;
  }

  /** The events from this number on: all of them, or as many as one batch may hold. */
  from(sequence: number): readonly string[] {
    const start = this.#start + sequence - this.#first;
    if (this.#size <= LARGEST_BATCH) return this.#events.slice(start);
    let end = start;
    let length = 0;
    while (end < this.#events.length && (end === start || length < LARGEST_BATCH)) length += this.#events[end++]?.length ?? 0;
    return this.#events.slice(start, end);
  }

  /** Characters of the events from this number on. */
  sizeFrom(sequence: number): number {
    let size = 0;
    for (let at = this.#start + sequence - this.#first; at < this.#events.length; at++) size += this.#events[at]?.length ?? 0;
    return size;
  }

  #isFull(): boolean {
    return !this.#keepsTaken || this.#size > MOST_CHARACTERS || this.#events.length - this.#start > MOST_EVENTS;
  }

  #drop(): void {
    this.#size -= this.#events[this.#start]?.length ?? 0;
    this.#events[this.#start] = '';
    this.#start++;
    this.#first++;
    if (this.#start < LONGEST_GAP) return;
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }
}
