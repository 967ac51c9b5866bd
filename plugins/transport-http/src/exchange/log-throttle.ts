import type { Clock, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';

/** Milliseconds between two log lines about one source. */
const INTERVAL = 1_000;

/** Sources tracked at the same time, and the most lines per second for all of them. */
const MAX_SOURCES = 256;

interface Source {
  /** When its last line was logged, on the clock's monotonic scale. */
  readonly at: number;
  /** Lines suppressed since then. */
  suppressed: number;
}

/** Limits log lines to one per second and source: callers must not flood the log. */
export class LogThrottle {
  readonly #clock: Clock;
  /** In order of their last lines. */
  readonly #sources = new Map<string, Source>();
  /** The number of lines suppressed so far, for all sources. */
  suppressed = 0;

  constructor(@inject(CONTEXT) { clock }: Pick<PluginContext, 'clock'>) {
    this.#clock = clock;
  }

  /**
   * Asks to log a line about a source.
   *
   * @returns undefined if the line must be suppressed; else the number suppressed since the last.
   */
  admit(name: string): number | undefined {
    const now = this.#clock.monotonic();
    const source = this.#sources.get(name) ?? this.#newSource(now);
    if (!source || now - source.at < INTERVAL) {
      this.suppressed++;
      if (source) source.suppressed++;
      return undefined;
    }
    this.#sources.delete(name);
    this.#sources.set(name, { at: now, suppressed: 0 });
    return source.suppressed;
  }

  /** Returns undefined if the table is full of sources that logged a line within the interval. */
  #newSource(now: number): Source | undefined {
    if (this.#sources.size >= MAX_SOURCES) {
      const [[name, { at }] = ['', NEW_SOURCE]] = this.#sources;
      if (now - at < INTERVAL) return undefined;
      this.#sources.delete(name);
    }
    return NEW_SOURCE;
  }
}

const NEW_SOURCE: Source = { at: Number.NEGATIVE_INFINITY, suppressed: 0 };
