import { AgentRuntimes, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import type { AgentRuntime, RequestCount } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { tooManyRequests } from '../errors/refusals.js';
import { ANONYMOUS } from '../limits/caller.js';

/**
 * Counts every request with the agent runtime, before its body is read. The runtime does not count
 * the turn of such a request again (`TurnRequest.account`).
 */
export class RequestLimits {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#runtimes = extensions(AgentRuntimes);
  }

  /**
   * Counts one request of the principal, and adds the `x-ratelimit-…` headers of the limit that is
   * closest. Does nothing for callers without a credential where one is required.
   *
   * @throws HttpError 429 if a limit is used up.
   */
  take(principal: Principal, reply?: { set(name: string, value: string): void }): void {
    if (principal === ANONYMOUS) return;
    const [runtime] = this.#runtimes.all();
    const counted = runtime?.value.countRequest?.(principal);
    if (counted?.limit && reply) addHeaders(reply, counted.limit);
    if (counted?.refused) throw tooManyRequests(counted.refused);
  }
}

function addHeaders(
  reply: { set(name: string, value: string): void },
  { requestsPerMinute, remaining, reset }: NonNullable<RequestCount['limit']>,
): void {
  reply.set('x-ratelimit-limit-requests', String(requestsPerMinute));
  reply.set('x-ratelimit-remaining-requests', String(remaining));
  reply.set('x-ratelimit-reset-requests', formatDuration(reset));
}

/** Formats milliseconds as the reference protocol does: `120ms`, `8.64s`, `1m0s`. */
function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = (ms % 60_000) / 1000;
  return ms < 60_000 ? `${seconds}s` : `${Math.floor(ms / 60_000)}m${seconds}s`;
}
