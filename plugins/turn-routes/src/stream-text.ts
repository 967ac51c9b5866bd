/**
 * Splits a text into pieces of at most `length` characters. Both halves of a surrogate pair are in
 * one piece.
 */
export function* piecesOf(text: string, length: number): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = start + length;
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    yield text.slice(start, end);
    start = end;
  }
}

/** Escapes a text for use inside the quotes of a JSON string. */
export function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** Joins parts to a flat string: V8 would copy the parts of a concatenation at each use. */
export function joined(...parts: readonly string[]): string {
  return parts.join('');
}
