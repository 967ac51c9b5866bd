import { hostError } from '../base/errors.js';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export const DURATION_PATTERN = /^(\d+)(ms|s|m|h|d)$/;

/**
 * Returns the milliseconds of `500ms`, `30s`, `10m`, `24h` or `90d`.
 * @throws HostError `DURATION_INVALID`. An option with `format: 'duration'` is always valid.
 * @public
 */
export function parseDuration(text: string): number {
  const [, count, unit] = DURATION_PATTERN.exec(text) ?? [];
  const factor = UNITS[unit ?? ''];
  if (factor === undefined) throw hostError('DURATION_INVALID', text);
  return Number(count) * factor;
}
