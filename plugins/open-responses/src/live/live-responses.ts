import { AgentRuntimes, type Clock, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import { type AgentRuntime, heapLimit } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { LiveResponse } from './live-response.js';
import { offerResponse } from './offered-response.js';

/** Milliseconds for which the events of a stored response are kept after its end. */
const KEPT_AFTER_END = 120_000;
/** Bytes that all responses may hold after their end. Beyond it, the oldest are forgotten first. */
const MAX_KEPT = Math.min(64 * 1024 * 1024, heapLimit() / 16);

interface Entry {
  readonly response: LiveResponse;
  readonly project: string;
  readonly agent: string;
  /** Hides it from other servers. Absent if there can be none. */
  readonly withdraw: (() => void) | undefined;
}

interface EndedEntry extends Entry {
  /** On the clock's monotonic scale. */
  readonly until: number;
  /** Bytes that it held when it ended. */
  readonly bytes: number;
}

/**
 * The responses that can be resumed and cancelled by their ids: stored ones that run, or ended a
 * short while ago.
 */
export class LiveResponses {
  readonly #clock: Clock;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #running = new Map<string, Entry>();
  /** In the order in which they ended. */
  readonly #ended = new Map<string, EndedEntry>();
  #bytes = 0;

  constructor(@inject(CONTEXT) { clock, extensions }: PluginContext) {
    this.#clock = clock;
    this.#runtimes = extensions(AgentRuntimes);
  }

  add(response: LiveResponse, { project }: Principal, agent: string): void {
    const servers = this.#runtimes.one().otherServers;
    const withdraw = servers && offerResponse(response, { project, agent }, servers);
    this.#running.set(response.id, { response, project, agent, withdraw });
  }

  /** Resolves when no stored response runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ response }) => response.ended));
  }

  /** The response with that id, if the principal reaches it. */
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
    if (!keepsEvents) entry?.withdraw?.();
    if (!entry || !keepsEvents) return;
    const bytes = response.events.bytes + (response.end?.response.length ?? 0);
    this.#ended.set(response.id, { ...entry, bytes, until: this.#clock.monotonic() + KEPT_AFTER_END });
    this.#bytes += bytes;
    this.#forgetOld();
  }

  forget(id: string): void {
    const entry = this.#ended.get(id);
    if (!entry) return;
    this.#ended.delete(id);
    entry.withdraw?.();
    this.#bytes -= entry.bytes;
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [id, { until }] of this.#ended) {
      if (until > now && this.#bytes <= MAX_KEPT) return;
      this.forget(id);
    }
  }
}
