/**
 * Exact decimals. Prices are per million tokens with at most 6 decimals, so what a number of tokens
 * costs has at most 12: sums are whole numbers of 10⁻¹².
 */
const PLACES = 12;
const MILLION = 1_000_000n;

/** A number of the file in millionths; undefined for one that has more than 6 decimals. */
export function millionthsOf(value: number): bigint | undefined {
  const [, whole, decimals = ''] = /^(\d+)(?:\.(\d{1,6}))?$/.exec(String(value)) ?? [];
  return whole === undefined ? undefined : BigInt(whole + decimals.padEnd(6, '0'));
}

/** An amount of the file as money, in 10⁻¹² of its currency. */
export function moneyOf(amount: number): bigint {
  return (millionthsOf(amount) ?? 0n) * MILLION;
}

/** Money as decimal text: `0.0315`, `12`. */
export function textOf(money: bigint): string {
  const digits = String(money).padStart(PLACES + 1, '0');
  const point = digits.length - PLACES;
  let end = digits.length;
  while (end > point && digits[end - 1] === '0') end--;
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`;
}

/** Reads what `textOf` wrote. */
export function parseMoney(text: string): bigint {
  const [whole = '', decimals = ''] = text.split('.');
  return BigInt(whole + decimals.padEnd(PLACES, '0'));
}
