import { CLOCK, type Clock, inject, injectable } from '@plugboard/kernel';

/** Milliseconds between two lines about one source. */
const EVERY = 1_000;

/** Sources that are told apart; there are no more lines than that in a second, however many sources there are. */
const SOURCES = 256;

interface Source {
  /** When its last line was written, on the clock's monotonic scale. */
  readonly at: number;
  /** How many were left out since then. */
  leftOut: number;
}

/** Keeps whoever can be refused for nothing, and as often as they like, from filling the log. */
@injectable()
export class LineLimit {
  readonly #clock: Clock;
  /** In the order of their last lines. */
  readonly #sources = new Map<string, Source>();
  #leftOut = 0;

  constructor(@inject(CLOCK) clock: Clock) {
    this.#clock = clock;
  }

  /** Lines left out in all. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** Whether a line about the source is to be written now, and then how many were left out before it; undefined where it is to be left out too. */
  admit(name: string): number | undefined {
    const now = this.#clock.monotonic();
    const source = this.#sources.get(name) ?? this.#stranger(now);
    if (!source || now - source.at < EVERY) {
      this.#leftOut++;
      if (source) source.leftOut++;
      return undefined;
    }
    this.#sources.delete(name);
    this.#sources.set(name, { at: now, leftOut: 0 });
    return source.leftOut;
  }

  /** Undefined where every place is taken by one that had a line just now. */
  #stranger(now: number): Source | undefined {
    if (this.#sources.size >= SOURCES) {
      const [[name, { at }] = ['', NEVER]] = this.#sources;
      if (now - at < EVERY) return undefined;
      this.#sources.delete(name);
    }
    return NEVER;
  }
}

const NEVER: Source = { at: Number.NEGATIVE_INFINITY, leftOut: 0 };
