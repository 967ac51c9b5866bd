const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Whether a JSON text nests arrays and objects deeper than `limit`. Checked before parsing:
 * `JSON.stringify` overflows the stack on values that `JSON.parse` accepts. For invalid JSON the
 * result is unspecified.
 */
export function nestsDeeperThan(limit: number, json: string): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(json, at);
        if (at < 0) return false;
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > limit) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
    }
  }
  return false;
}

/** Returns the index of the closing quote, or -1. Most of a body is strings, and `indexOf` skips them far faster than a loop. */
function endOfString(json: string, open: number): number {
  let close = open;
  let escaped: boolean;
  do {
    close = json.indexOf('"', close + 1);
    let backslashes = 0;
    while (json.charCodeAt(close - 1 - backslashes) === BACKSLASH) backslashes++;
    escaped = backslashes % 2 === 1;
  } while (close >= 0 && escaped);
  return close;
}
