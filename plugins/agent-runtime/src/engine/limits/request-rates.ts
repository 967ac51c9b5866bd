import type { Clock, PluginContext, Principal } from '@plugboard/kernel';
import { type RequestCount, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';

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

/** Counts requests elsewhere too. */
export interface RateCounter {
  add(name: string, perMinute: number): void;
}

const UNLIMITED: RequestCount = {};

/**
 * Limits requests per minute with one token bucket for each API token, and one for each project
 * (S-41). A bucket holds a minute's worth of requests and refills evenly, so an idle token may send
 * a whole minute's worth at once.
 */
export class RequestRates {
  /** Receives each bucket that a request is added to. */
  counter: RateCounter | undefined;
  readonly #clock: Clock;
  /** In order of last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(@inject(CONTEXT) { clock }: PluginContext) {
    this.#clock = clock;
  }

  /** The number of buckets kept: those used within the last minute. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Counts one request of the principal. A request that is refused counts nowhere.
   *
   * @param shared the limit of the principal's project, if it has one.
   */
  count(principal: Principal, shared: number | undefined): RequestCount {
    const { project, token, tokenId, limits } = principal;
    const own = limits?.requestsPerMinute;
    if (own === undefined && shared === undefined) return UNLIMITED;
    const now = this.#clock.monotonic();
    const applied: Applied[] = [];
    if (own !== undefined) applied.push(this.#applied('credential', tokenId ?? JSON.stringify([project, token]), own, now));
    // Differs from every key of a credential: those are ids, or lists of two.
    if (shared !== undefined) applied.push(this.#applied('project', JSON.stringify([project]), shared, now));
    const refusing = applied.find((one) => left(one) < MINUTE);
    const cost = refusing ? 0 : MINUTE;
    for (const { name } of applied) this.#buckets.delete(name);
    this.#forget(now);
    for (const { name, debt } of applied) this.#buckets.set(name, { debt: debt + cost, at: now });
    if (!refusing) for (const { name, limit } of applied) this.counter?.add(name, limit);
    const closest = refusing ?? applied.reduce((found, one) => (left(one) < left(found) ? one : found));
    const { limit: requestsPerMinute, debt } = closest;
    return {
      limit: {
        requestsPerMinute,
        remaining: Math.max(0, Math.floor((left(closest) - cost) / MINUTE)),
        reset: Math.ceil((debt + cost) / requestsPerMinute),
      },
      refused: refusing && tooManyRequests(refusing),
    };
  }

  /** Replaces what is known of a bucket. @param lacking requests, over all servers */
  learn(name: string, lacking: number): void {
    if (this.#buckets.has(name)) this.#buckets.set(name, { debt: lacking * MINUTE, at: this.#clock.monotonic() });
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

function tooManyRequests(refusing: Applied): TurnError {
  const { of, limit } = refusing;
  const what = of === 'credential' ? 'its limit of requests per minute' : 'its `requestsPerMinute`, which all its callers share';
  const wait = Math.ceil((MINUTE - left(refusing)) / limit);
  return new TurnError('rate_limited', `This ${of} has reached ${what}. Try again later.`, { retryAfter: wait / 1000 });
}
