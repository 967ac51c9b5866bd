/** Bytes of a tool's result that callers are shown. */
const SHOWN_BYTES = 16 * 1024;
/** Reserved for the note that says how much was left out. */
const NOTE_BYTES = 64;

/**
 * A tool's result as callers are shown it: at most 16 KiB of UTF-8, with a last line that says how
 * much was left out.
 */
export function truncateResult(text: string): string {
  // A UTF-16 code unit is 1 to 3 bytes of UTF-8.
  if (text.length * 3 <= SHOWN_BYTES) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= SHOWN_BYTES) return text;
  let end = SHOWN_BYTES - NOTE_BYTES;
  while (isContinuation(bytes[end])) end--;
  return `${bytes.toString('utf8', 0, end)}\n… [truncated ${bytes.length - end} bytes]`;
}

function isContinuation(byte = 0): boolean {
  return (byte & 0xc0) === 0x80;
}
