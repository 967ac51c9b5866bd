import { EscapedText } from './escaped-text.js';

const QUOTE = 34;
const BACKSLASH = 92;
const SMALL_U = 117;
const FIRST_PRINTABLE = 32;

/** Characters of an event that a template is derived from. Longer ones are as cheap to parse. */
const MAX_LENGTH = 8192;

/** Escaped text that ends with the first half of a character. */
const SPLIT = /\\u[dD][89abAB][0-9a-fA-F]{2}$/;

/**
 * The constant text around the content of a stream's chunks. In most streams the chunks that carry
 * nothing but a piece of text are equal to the character, except for the content and for the random
 * padding that some servers put into the last member against traffic analysis. Such a chunk needs
 * no parsing: where the text around it matches, its content is cut out, still escaped.
 *
 *     {"id":"x","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"obfuscation":"aB3x"}
 *     └─────────────────── before ───────────────────────┘└ text ┘└────────────── after ──────────────┘└pad┘└┘ last
 *
 * Why this is exact: a template is derived from a chunk that was parsed, and verified (`verify`).
 * In valid JSON, replacing one string by another changes the value at that place and nothing else.
 */
export class ChunkTemplate {
  readonly #before: string;
  readonly #after: string;
  /** What follows the padding; undefined without padding. */
  readonly #last: string | undefined;

  private constructor(before: string, after: string, last: string | undefined) {
    this.#before = before;
    this.#after = after;
    this.#last = last;
  }

  /** Derives a template from a chunk, if possible. @param content all that the chunk carries. */
  static derive(chunk: string, content: string): ChunkTemplate | undefined {
    if (chunk.length > MAX_LENGTH) return undefined;
    for (const key of chunk.matchAll(/"content"\s*:\s*"/g)) {
      const before = chunk.slice(0, key.index + key[0].length);
      const rest = chunk.slice(before.length).replace(/^(?:[^"\\]|\\.)*/, '');
      const [, after, last] = /^(.*"\s*:\s*")[^"\\]*("\s*\}\s*)$/s.exec(rest) ?? [];
      if (after !== undefined && last !== undefined && verify(content, before, after, last))
        return new ChunkTemplate(before, after, last);
      if (verify(content, before, rest, undefined)) return new ChunkTemplate(before, rest, undefined);
    }
    return undefined;
  }

  /** The text of a chunk, if it matches, is not empty and does not end within a character. */
  match(chunk: string): EscapedText | undefined {
    const from = this.#before.length;
    // Comparing slices is much faster than `startsWith`.
    if (chunk.slice(0, from) !== this.#before) return undefined;
    let hasEscapes = false;
    let to = from;
    for (;;) {
      const char = chunk.charCodeAt(to);
      if (char === QUOTE) break;
      if (char === BACKSLASH) {
        const length = escapeLength(chunk, to);
        if (length === 0) return undefined;
        hasEscapes = true;
        to += length;
      } else if (char >= FIRST_PRINTABLE) to += 1;
      else return undefined; // a control character, or NaN at the end
    }
    if (to === from || !this.#matchesRest(chunk, to)) return undefined;
    if (hasEscapes && SPLIT.test(chunk.slice(from, to))) return undefined;
    return new EscapedText(chunk.slice(from, to), hasEscapes);
  }

  /** Compares everything from the closing quote of the content on. */
  #matchesRest(chunk: string, start: number): boolean {
    if (this.#last === undefined) return chunk.slice(start) === this.#after;
    const padding = start + this.#after.length;
    const last = chunk.length - this.#last.length;
    if (last < padding || chunk.slice(start, padding) !== this.#after || chunk.slice(last) !== this.#last) return false;
    for (let i = padding; i < last; i++) {
      const char = chunk.charCodeAt(i);
      if (char < FIRST_PRINTABLE || char === QUOTE || char === BACKSLASH) return false;
    }
    return true;
  }
}

/**
 * Checks that the string between `before` and `after` is the content, and that the padding, if any,
 * is a top-level member that the parser ignores: parses the chunk with both replaced and looks for
 * them at their places.
 */
function verify(content: string, before: string, after: string, last: string | undefined): boolean {
  const probe = content === 'a' ? 'b' : 'a';
  const padding = 'padding';
  const chunk = JSON.parse(before + probe + after + (last === undefined ? '' : padding + last));
  if (chunk.choices[0].delta?.content !== probe) return false;
  if (last === undefined) return true;
  const [key, value] = Object.entries(chunk).at(-1) ?? [];
  return key !== 'error' && value === padding;
}

/** The length of the escape sequence that begins at a backslash; 0 if JSON has no such sequence. */
function escapeLength(text: string, start: number): 0 | 2 | 6 {
  const kind = text.charCodeAt(start + 1);
  if (kind !== SMALL_U) return SIMPLE_ESCAPES.has(kind) ? 2 : 0;
  for (let i = start + 2; i < start + 6; i++) if (!isHexDigit(text.charCodeAt(i))) return 0;
  return 6;
}

const SIMPLE_ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

function isHexDigit(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 65 && char <= 70) || (char >= 97 && char <= 102);
}
