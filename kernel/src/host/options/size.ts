const UNITS: Readonly<Record<string, number>> = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

export const SIZE_PATTERN = /^(\d+)(b|kb|mb|gb)$/;

/** Bytes of `512b`, `64kb`, `20mb` or `1gb`, in powers of 1024. @throws RangeError where the text is none of these; options of `format: 'size'` never are. */
export function parseSize(text: string): number {
  const [, count, unit] = SIZE_PATTERN.exec(text) ?? [];
  const factor = UNITS[unit ?? ''];
  if (factor === undefined) throw new RangeError(`"${text}" is no size; one is written like 512b, 64kb, 20mb or 1gb`);
  return Number(count) * factor;
}
