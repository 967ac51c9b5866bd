import { hash } from 'node:crypto';

/**
 * From this many identical calls in a row on, a call gets an error instead of being run.
 */
export const MAX_REPEATS = 3;

/** A call, and how often it was made in a row. */
export interface RepeatedCall {
  readonly digest: string;
  readonly count: number;
}

/** Counts a call. @param last the call before it. */
export function repeatedCall(last: RepeatedCall | undefined, name: string, text: string): RepeatedCall {
  const digest = hash('sha256', `${name} ${text}`, 'base64');
  return { digest, count: digest === last?.digest ? last.count + 1 : 1 };
}
