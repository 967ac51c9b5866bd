const DATE_PATTERN = /^(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Parses an ISO 8601 date or time. `2027-01-31` is the start of that day in UTC; a time without a
 * zone is local time.
 *
 * @returns milliseconds since the epoch, or undefined if the text is not a date that exists.
 * @public
 */
export function parseDate(text: string): number | undefined {
  const [, day] = DATE_PATTERN.exec(text) ?? [];
  const time = Date.parse(text);
  if (day === undefined || Number.isNaN(time)) return undefined;
  // `Date.parse` reads 2027-02-30 as 2 March.
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day) ? time : undefined;
}
