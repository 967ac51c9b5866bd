import type { Clock, Principal } from '@plugboard/kernel';
import { heapLimit } from '@plugboard/kernel/contracts';
import type { LiveResponse } from './live-response.js';

/** How long the events of a stored response are kept after its end (ms). */
const KEPT_AFTER_END = 120_000;
/**
 * Characters that all responses may hold after their end. Beyond it, the oldest are forgotten
 * first.
 */
const MOST_KEPT = Math.min(64 * 1024 * 1024, heapLimit() / 16);

interface Entry {
  readonly response: LiveResponse;
  readonly project: string;
  readonly agent: string;
}

interface EndedEntry extends Entry {
  readonly until: number;
  /** Characters that it held when it ended. */
  readonly size: number;
}

/**
 * The responses that can be resumed and cancelled by their ids: stored ones that run, or ended a
 * short while ago.
 */
export class ResponseRegistry {
  readonly #clock: Clock;
  readonly #running = new Map<string, Entry>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, EndedEntry>();
  #kept = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(response: LiveResponse, { project }: Principal, agent: string): void {
    this.#running.set(response.id, { response, project, agent });
  }

  /** Resolves when no stored response runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ response }) => response.ended));
  }

  /** The response of that id, if the principal reaches it. */
  find(id: string, { project, agents }: Principal): LiveResponse | undefined {
    this.#forgetOld();
    const entry = this.#running.get(id) ?? this.#ended.get(id);
    if (!entry || entry.project !== project || agents?.includes(entry.agent) === false) return undefined;
    return entry.response;
  }

  /** The response has ended. @param keepsEvents whether a client may come back for its events. */
  end(response: LiveResponse, keepsEvents: boolean): void {
    const entry = this.#running.get(response.id);
    this.#running.delete(response.id);
    if (!entry || !keepsEvents) return;
    const { size } = response;
    this.#ended.set(response.id, { ...entry, size, until: this.#clock.monotonic() + KEPT_AFTER_END });
    this.#kept += size;
    this.#forgetOld();
  }

  forget(id: string): void {
    const entry = this.#ended.get(id);
    if (!entry) return;
    this.#ended.delete(id);
    this.#kept -= entry.size;
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [id, { until }] of this.#ended) {
      if (until > now && this.#kept <= MOST_KEPT) return;
      this.forget(id);
    }
  }
}
