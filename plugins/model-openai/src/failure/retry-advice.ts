import { isObject, isText } from '../json/json.js';

interface RetryAdvice {
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

/** The wait that an error object asks for, in milliseconds: `google.rpc.RetryInfo`, a sentence. */
export function retryDelay(error: unknown, text: string): number | undefined {
  for (const detail of detailsOf(error)) if (isText(detail.retryDelay)) return durationIn(detail.retryDelay);
  const after = isObject(error) ? error.retry_after : undefined;
  if (typeof after === 'number' && after >= 0) return after * 1000;
  const [, asked] = /(?:retry|try again) (?:in|after) ([\d.]+ ?[a-z][\w. ]*)/i.exec(text) ?? [];
  return asked === undefined ? undefined : durationIn(asked);
}

/** Whether a quota for a whole day is used up (Gemini): a retry cannot help today. */
export function isDailyQuota(error: unknown): boolean {
  return detailsOf(error).some(
    ({ violations }) =>
      Array.isArray(violations) &&
      violations.some((one) => isObject(one) && isText(one.quotaId) && one.quotaId.includes('PerDay')),
  );
}

function detailsOf(error: unknown): readonly Readonly<Record<string, unknown>>[] {
  return isObject(error) && Array.isArray(error.details) ? error.details.filter(isObject) : [];
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `45.8s`, `6m0s`, `250ms`, `20 seconds`. */
function durationIn(text: string): number | undefined {
  let total: number | undefined;
  for (const [, count, unit] of text.matchAll(
    /(?<![\d.])([\d.]+) ?(ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)(?![a-z])/gi,
  )) {
    const factor = UNITS[unit?.toLowerCase().startsWith('mil') ? 'ms' : unit === 'ms' ? 'ms' : (unit?.[0]?.toLowerCase() ?? '')];
    const value = Number(count) * (factor ?? Number.NaN);
    if (!Number.isNaN(value)) total = (total ?? 0) + value;
  }
  return total;
}
