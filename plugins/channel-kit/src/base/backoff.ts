import type { IdSource } from '@plugboard/kernel';

/** Milliseconds before a further attempt: `first`, then twice as long, up to `most`. */
export interface Backoff {
  readonly first: number;
  readonly most: number;
}

/** A share of the wait by which it may be shorter or longer, so that many do not come at once. */
const JITTER = 0.1;

/** The wait after so many failed attempts. @param ids without it, the wait is exact. */
export function backoff({ first, most }: Backoff, attempts: number, ids?: IdSource): number {
  const ms = Math.min(most, first * 2 ** Math.min(30, attempts - 1));
  return ids ? Math.round(ms * (1 + JITTER * (2 * ids.fraction() - 1))) : ms;
}
