import { parseDate, parseDuration } from '@plugboard/kernel';

/**
 * Parses an expiry: an ISO 8601 date or time (`2027-01-31` is the start of that day in UTC) or a
 * duration from `now` (`90d`).
 * @returns milliseconds since the epoch, or undefined if the text is neither.
 */
export function parseExpiry(text: string, now: number): number | undefined {
  if (/^\d{4}-/.test(text)) return parseDate(text);
  try {
    return now + parseDuration(text);
  } catch {
    return undefined;
  }
}
