export interface RetryAdvice {
  /** Whether the server says so; undefined where it does not say. */
  readonly retryable: boolean | undefined;
  /** Milliseconds to wait. */
  readonly retryAfter: number | undefined;
}

/**
 * What a server says about trying again: `Retry-After` (RFC 9110, section 10.2.3: seconds or a date), and the two headers that clients of
 * this protocol know besides, `retry-after-ms` and `x-should-retry`. Another Plugboard sends the last after a turn that must not run twice.
 *
 * @param now milliseconds since 1970.
 */
export function retryAdvice(headers: Readonly<Record<string, string | string[] | undefined>>, now: number): RetryAdvice {
  const shouldRetry = headers['x-should-retry'];
  return {
    retryable: shouldRetry === 'true' ? true : shouldRetry === 'false' ? false : undefined,
    retryAfter: milliseconds(headers['retry-after-ms']) ?? seconds(headers['retry-after'], now),
  };
}

function milliseconds(value: string | string[] | undefined): number | undefined {
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : Number.NaN;
  return count >= 0 && count < Number.POSITIVE_INFINITY ? count : undefined;
}

function seconds(value: string | string[] | undefined, now: number): number | undefined {
  const count = milliseconds(value);
  if (count !== undefined) return count * 1000;
  const date = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
