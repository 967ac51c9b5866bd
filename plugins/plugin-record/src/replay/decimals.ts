/** Adds two numbers that are decimal text, exactly: `addDecimals('0.1', '0.02')` is `0.12`. */
export function addDecimals(a: string, b: string): string {
  const places = Math.max(placesOf(a), placesOf(b));
  const digits = String(scaled(a, places) + scaled(b, places)).padStart(places + 1, '0');
  const whole = digits.length - places;
  let end = digits.length;
  while (end > whole && digits[end - 1] === '0') end--;
  return end === whole ? digits.slice(0, whole) : `${digits.slice(0, whole)}.${digits.slice(whole, end)}`;
}

function placesOf(text: string): number {
  const point = text.indexOf('.');
  return point < 0 ? 0 : text.length - point - 1;
}

function scaled(text: string, places: number): bigint {
  return BigInt(text.replace('.', '') + '0'.repeat(places - placesOf(text)));
}
