export interface RetryAdvice {
  /** What `x-should-retry` says; undefined without that header. */
  readonly retryable: boolean | undefined;
  /** Milliseconds to wait. */
  readonly retryAfter: number | undefined;
}

/**
 * Reads what a response says about retrying: `Retry-After` (RFC 9110, section 10.2.3: seconds or a
 * date), and two headers that OpenAI's clients know: `retry-after-ms` and `x-should-retry`. Another
 * Plugboard sends the latter after a turn that must not run twice.
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
