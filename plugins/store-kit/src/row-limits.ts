const HOUR = 60 * 60_000;
const DAY = 24 * HOUR;

/** Milliseconds that turns are kept which wait for the results of the caller's tools. */
export const PENDING_CALL_TTL = HOUR;
/** Milliseconds that idempotency records are kept. */
export const RECORD_TTL = DAY;
/** Milliseconds that the version of a deleted or expired session is kept. */
export const TOMBSTONE_TTL = 30 * DAY;

/** Bytes that a turn needs at least. How many it will really need is unknown when it begins. */
export const SMALLEST_TURN = 1;
/** After every key of `ctx.state` that starts with a prefix: keys have at most 512 bytes. */
export const LAST_KEY = '\u{10ffff}'.repeat(128);

/** Set by the contract of `IdempotencyStore`. */
export const MAX_RECORDS = 100_000;
/** Share of the limit that is deleted at once beyond it, so that rows are rarely counted. */
const OVERFLOW = 0.01;

/** How many of too many idempotency records are deleted: the oldest. */
export function surplusOf(count: number, maxRecords: number): number {
  return count - Math.floor(maxRecords * (1 - OVERFLOW)) - 1;
}
