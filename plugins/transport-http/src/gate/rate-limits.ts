import { CLOCK, type Clock, inject, injectable, type Principal } from '@plugboard/kernel';
import { tooManyRequests } from '../errors/refusals.js';

const MINUTE = 60_000;

/** In request-milliseconds: a request is 60,000 of them, and in each millisecond as many come back as a token may send in a minute. */
interface Bucket {
  /** What is missing until it is full. */
  readonly debt: number;
  /** When that was so, on the clock's monotonic scale. */
  readonly at: number;
}

/**
 * How many requests a token may still send: a bucket for each, which holds as many as the token may send in a minute, and fills up evenly within
 * one. So a token that was quiet may send them all at once.
 */
@injectable()
export class RateLimits {
  readonly #clock: Clock;
  /** In the order in which they were last used. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(@inject(CLOCK) clock: Clock) {
    this.#clock = clock;
  }

  /** How many tokens are remembered: those that were used within the last minute. */
  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Takes one request off what the principal may still send, and adds to the headers of its answer how much that is; nothing where it has no
   * limit. @throws HttpError 429 where there is none left.
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
    headers['x-ratelimit-reset-requests'] = spoken(Math.ceil(after / limit));
    if (!passes) throw tooManyRequests((MINUTE - left) / limit);
  }

  /** A bucket that nobody used for a minute is full, as one is that was never used. */
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

/** A time as the reference protocol writes it: `120ms`, `8.64s`, `1m0s`. */
function spoken(ms: number): string {
  if (ms < 1000) return `${ms}ms`;
  const seconds = (ms % MINUTE) / 1000;
  return ms < MINUTE ? `${seconds}s` : `${Math.floor(ms / MINUTE)}m${seconds}s`;
}
