const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export const DURATION_PATTERN = /^(\d+)(ms|s|m|h|d)$/;

/** Milliseconds of `500ms`, `30s`, `10m`, `24h` or `90d`. @throws RangeError where the text is none of these; options of `format: 'duration'` never are. */
export function parseDuration(text: string): number {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  const factor = UNITS[unit ?? ''];
  if (factor === undefined) throw new RangeError(`"${text}" is no duration; one is written like 500ms, 30s, 10m, 24h or 90d`);
  return Number(count) * factor;
}
