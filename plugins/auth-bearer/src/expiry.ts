import { parseDuration } from '@plugboard/kernel';

/**
 * Milliseconds since 1970 of `2027-01-31`, the beginning of that day in UTC, or of any other date of ISO 8601; of `90d`, so long after `now`.
 * Undefined where the text is neither.
 */
export function parseExpiry(text: string, now: number): number | undefined {
  if (/^\d{4}-\d{2}-\d{2}/.test(text)) {
    const time = Date.parse(text);
    return Number.isNaN(time) ? undefined : time;
  }
  try {
    return now + parseDuration(text);
  } catch {
    return undefined;
  }
}
