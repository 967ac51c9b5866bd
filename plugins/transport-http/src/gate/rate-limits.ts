import type { Clock, Principal } from '@plugboard/kernel';
import { CLOCK, inject, injectable } from '@plugboard/kernel/injection';
import { tooManyRequests } from '../errors/refusals.js';

const MINUTE = 60_000;

/** Counts in request-milliseconds: one request costs 60,000, and each millisecond returns `requestsPerMinute` of them. */
interface Bucket {
  /** How much is missing until the bucket is full. */
  readonly debt: number;
  /** When `debt` was computed, on the clock's monotonic scale. */
  readonly at: number;
}

/**
 * Limits requests per minute with one token bucket for each API token. A bucket holds a minute's
 * worth of requests and refills evenly, so an idle token may send a whole minute's worth at once.
 */
@injectable()
export class RateLimits {
  readonly #clock: Clock;
  /** In order of last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(@inject(CLOCK) clock: Clock) {
    this.#clock = clock;
  }

  /** The number of buckets kept: those used within the last minute. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Counts one request of the principal and adds the `x-ratelimit-…` headers. Does nothing if the
   * principal has no limit.
   *
   * @throws HttpError 429 if the limit is used up.
   */
  take(principal: Principal, headers: Record<string, string>): void {
    const limit = principal.limits?.requestsPerMinute;
    if (limit === undefined) return;
    const now = this.#clock.monotonic();
    const name = keyOf(principal);
    const { debt, at } = this.#buckets.get(name) ?? { debt: 0, at: now };
    const before = Math.max(0, debt - (now - at) * limit);
    const left = limit * MINUTE - before;
    const passes = left >= MINUTE;
    const after = passes ? before + MINUTE : before;
    this.#buckets.delete(name);
    this.#forget(now);
    this.#buckets.set(name, { debt: after, at: now });
    headers['x-ratelimit-limit-requests'] = String(limit);
    headers['x-ratelimit-remaining-requests'] = String(Math.max(0, Math.floor(limit - after / MINUTE)));
    headers['x-ratelimit-reset-requests'] = formatDuration(Math.ceil(after / limit));
    if (!passes) throw tooManyRequests((MINUTE - left) / limit);
  }

  /** A bucket unused for a minute is full again, so it need not be kept. */
  #forget(now: number): void {
    for (const [name, { at }] of this.#buckets) {
      if (now - at < MINUTE) return;
      this.#buckets.delete(name);
    }
  }
}

function keyOf({ tokenId, project, token }: Principal): string {
  return tokenId ?? JSON.stringify([project, token]);
}

/** Formats milliseconds as the reference protocol does: `120ms`, `8.64s`, `1m0s`. */
function formatDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = (ms % MINUTE) / 1000;
  return ms < MINUTE ? `${seconds}s` : `${Math.floor(ms / MINUTE)}m${seconds}s`;
}
