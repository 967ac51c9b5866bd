import { AgentRuntimes, type Clock, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { tooManyRequests } from '../errors/refusals.js';
import { ANONYMOUS } from '../limits/caller.js';

const MINUTE = 60_000;

/**
 * Counts in request-milliseconds: one request costs 60,000, and each millisecond returns
 * `requestsPerMinute` of them.
 */
interface Bucket {
  /** How much is missing until the bucket is full. */
  readonly debt: number;
  /** When `debt` was computed, on the clock's monotonic scale. */
  readonly at: number;
}

/** A limit that applies to a request, and what is missing in its bucket before the request. */
interface Applied {
  readonly of: 'credential' | 'project';
  readonly name: string;
  readonly limit: number;
  readonly debt: number;
}

/**
 * Limits requests per minute with one token bucket for each API token, and one for each project
 * (S-41). A bucket holds a minute's worth of requests and refills evenly, so an idle token may send
 * a whole minute's worth at once.
 */
export class RateLimits {
  readonly #clock: Clock;
  /** The agent runtime knows the limits of projects. */
  readonly #runtimes: Extensions<AgentRuntime>;
  /** In order of last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(@inject(CONTEXT) { clock, extensions }: PluginContext) {
    this.#clock = clock;
    this.#runtimes = extensions(AgentRuntimes);
  }

  /** The number of buckets kept: those used within the last minute. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Counts one request of the principal, and adds the `x-ratelimit-…` headers of the limit that is
   * closest. Does nothing if neither the principal nor its project has a limit, and for callers
   * without a credential where one is required. A request that is refused counts nowhere.
   *
   * @throws HttpError 429 if a limit is used up.
   */
  take(principal: Principal, reply?: { set(name: string, value: string): void }): void {
    if (principal === ANONYMOUS) return;
    const own = principal.limits?.requestsPerMinute;
    const shared = this.#projectLimit(principal.project);
    if (own === undefined && shared === undefined) return;
    const now = this.#clock.monotonic();
    const applied: Applied[] = [];
    if (own !== undefined) applied.push(this.#applied('credential', keyOf(principal), own, now));
    if (shared !== undefined) applied.push(this.#applied('project', projectKey(principal), shared, now));
    const refusing = applied.find((one) => left(one) < MINUTE);
    const cost = refusing ? 0 : MINUTE;
    for (const { name } of applied) this.#buckets.delete(name);
    this.#forget(now);
    for (const { name, debt } of applied) this.#buckets.set(name, { debt: debt + cost, at: now });
    const closest = refusing ?? applied.reduce((found, one) => (left(one) < left(found) ? one : found));
    const { limit, debt, of } = closest;
    reply?.set('x-ratelimit-limit-requests', String(limit));
    reply?.set('x-ratelimit-remaining-requests', String(Math.max(0, Math.floor((left(closest) - cost) / MINUTE))));
    reply?.set('x-ratelimit-reset-requests', formatDuration(Math.ceil((debt + cost) / limit)));
    if (refusing) throw tooManyRequests((MINUTE - left(refusing)) / limit, of);
  }

  #projectLimit(project: string): number | undefined {
    const [runtime] = this.#runtimes.all();
    return runtime?.value.projectLimits?.(project).requestsPerMinute;
  }

  #applied(of: Applied['of'], name: string, limit: number, now: number): Applied {
    const { debt, at } = this.#buckets.get(name) ?? { debt: 0, at: now };
    return { of, name, limit, debt: Math.max(0, debt - (now - at) * limit) };
  }

  /** A bucket unused for a minute is full again, so it need not be kept. */
  #forget(now: number): void {
    for (const [name, { at }] of this.#buckets) {
      if (now - at < MINUTE) return;
      this.#buckets.delete(name);
    }
  }
}

/** What a limit still allows, in request-milliseconds. */
function left({ limit, debt }: Applied): number {
  return limit * MINUTE - debt;
}

function keyOf({ tokenId, project, token }: Principal): string {
  return tokenId ?? JSON.stringify([project, token]);
}

/** Differs from every key of a credential: those are ids, or lists of two. */
function projectKey({ project }: Principal): string {
  return JSON.stringify([project]);
}

/** Formats milliseconds as the reference protocol does: `120ms`, `8.64s`, `1m0s`. */
function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = (ms % MINUTE) / 1000;
  return ms < MINUTE ? `${seconds}s` : `${Math.floor(ms / MINUTE)}m${seconds}s`;
}
