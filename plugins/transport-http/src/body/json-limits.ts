import type { Span } from './known-tools.js';

/** What JSON may consist of. Objects, arrays and scalars are values; keys are not. */
export interface JsonLimits {
  /** Levels of arrays and objects. */
  readonly depth: number;
  readonly values: number;
  /** Keys of one object. */
  readonly keys: number;
}

/** What a JSON text consists of. */
interface JsonSize {
  readonly values: number;
  /** Keys of all objects together. */
  readonly keys: number;
  /** The limit that the text exceeds. Counting stops there. */
  readonly exceeded: keyof JsonLimits | undefined;
  /** Whether `JSON.parse` reads the text as `parseJson` does: no key can be `__proto__`. */
  readonly isPlain: boolean;
  /** Where the value of the field `tools` is, if it is a list or an object. */
  readonly tools: Span | undefined;
}

const BACKSLASH = 0x5c;
const UNDERSCORE = 0x5f;
const BYTE_ORDER_MARK = 0xfeff;
const TOOLS = '"tools"';

/** What a character means outside of strings. All others are part of a number or literal. */
const [SCALAR, SPACE, STRING, COLON, OPEN, CLOSE] = [0, 1, 2, 3, 4, 5] as const;
const KINDS = new Uint8Array(0x1_0000);
for (const [characters, kind] of [
  [' \t\n\r,', SPACE],
  ['"', STRING],
  [':', COLON],
  ['[{', OPEN],
  [']}', CLOSE],
] as const) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind;
}

/**
 * Counts what a JSON text consists of, before it is parsed. Parsed values take many times the
 * memory of their text (S-35), and `JSON.stringify` overflows the stack on nesting that
 * `JSON.parse` accepts.
 *
 * One pass without recursion: about 10 ns per character in the worst case. For invalid JSON the
 * result is unspecified.
 */
export function measureJson(json: string, limits: JsonLimits): JsonSize {
  const { length } = json;
  /** The number of keys of each open array or object. */
  const keys: number[] = [0];
  let values = 0;
  let allKeys = 0;
  let isPlain = json.charCodeAt(0) !== BYTE_ORDER_MARK;
  /** Where the last string begins. */
  let open = 0;
  /** Where `tools` begins. */
  let start = -1;
  let isInTools = false;
  let tools: Span | undefined;
  const size = (exceeded?: keyof JsonLimits): JsonSize => ({ values, keys: allKeys, exceeded, isPlain, tools });
  for (let at = 0; at < length; at++) {
    const kind = KINDS[json.charCodeAt(at)];
    switch (kind) {
      case SPACE:
      case SCALAR:
        if (kind === SCALAR) values++;
        while (at + 1 < length && KINDS[json.charCodeAt(at + 1)] === kind) at++;
        break;
      case STRING:
        open = at;
        at = endOfString(json, at);
        if (at < 0) return size();
        values++;
        break;
      case COLON: {
        values--; // the string before it was a key
        allKeys++;
        const first = json.charCodeAt(open + 1);
        if (first === UNDERSCORE || first === BACKSLASH) isPlain = false; // the key may be `__proto__`
        if (keys.length === 2) {
          isInTools = json.startsWith(TOOLS, open);
          if (isInTools) tools = undefined; // of equal keys the last one counts
          if (hasEscape(json, open, at)) isPlain = false; // the key may be `tools`
        }
        const count = (keys.pop() ?? 0) + 1;
        if (count > limits.keys) return size('keys');
        keys.push(count);
        break;
      }
      case OPEN:
        values++;
        if (keys.length > limits.depth) return size('depth');
        if (isInTools && keys.length === 2) start = at;
        keys.push(0);
        break;
      default:
        if (keys.length > 1) keys.pop();
        if (isInTools && keys.length === 2) tools = { start, end: at + 1 };
    }
    if (values > limits.values) return size('values');
  }
  return size();
}

/** Returns the index of the closing quote, or -1: of the first quote that is not escaped. */
function endOfString(json: string, open: number): number {
  let close = json.indexOf('"', open + 1);
  while (close >= 0 && isEscaped(json, close)) close = json.indexOf('"', close + 1);
  return close;
}

function hasEscape(json: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (json.charCodeAt(at) === BACKSLASH) return true;
  return false;
}

/** Whether an odd number of backslashes precedes a quote of a string. */
function isEscaped(json: string, quote: number): boolean {
  let before = quote - 1;
  while (json.charCodeAt(before) === BACKSLASH) before--;
  return (quote - before) % 2 === 0;
}
