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
