import { hostError } from '../base/errors.js';

const UNITS: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

export const SIZE_PATTERN = /^(\d+)(b|kb|mb|gb)$/;

/**
 * Returns the bytes of `512b`, `64kb`, `20mb` or `1gb`, in powers of 1024.
 * @throws HostError `SIZE_INVALID`. An option with `format: 'size'` is always valid.
 * @public
 */
export function parseSize(text: string): number {
  const [, count, unit] = SIZE_PATTERN.exec(text) ?? [];
  const factor = UNITS[unit ?? ''];
  if (factor === undefined) throw hostError('SIZE_INVALID', text);
  return Number(count) * factor;
}
