import { EscapedText } from './escaped-text.js';

const QUOTE = 34;
const BACKSLASH = 92;
const SMALL_U = 117;
const FIRST_PRINTABLE = 32;
const LAST_ASCII = 127;

/** Bytes of an event from which a stencil is cut: one that is larger says so much that parsing it is no matter. */
const LARGEST = 8192;

/**
 * The shape that a model server gives to the events of one stream, as far as they are nothing but a piece of text: they are the same to the
 * byte, apart from the content itself, and from the padding that some servers put in the last member against eavesdroppers. So such an event
 * needs not be parsed: where everything around matches, the content is cut out, still escaped.
 *
 *     {"id":"x","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"obfuscation":"aB3x"}
 *     └─────────────────── before ───────────────────────┘└ text ┘└────────────── after ──────────────┘└pad┘└┘ last
 *
 * Why this is exact: the shape is cut from an event that was parsed, and put to the proof (`prove`). In what is valid JSON, another valid
 * string in the place of a string changes the value at that place and nothing else.
 */
export class Stencil {
  readonly #before: Buffer;
  readonly #after: Buffer;
  /** What follows the padding; undefined where there is none. */
  readonly #last: Buffer | undefined;

  private constructor(before: string, after: string, last: string | undefined) {
    this.#before = Buffer.from(before, 'latin1');
    this.#after = Buffer.from(after, 'latin1');
    this.#last = last === undefined ? undefined : Buffer.from(last, 'latin1');
  }

  /**
   * Cuts a stencil from an event, where that can be done.
   *
   * @param content what the event was found to say, and the only thing that it says.
   */
  static cut(bytes: Buffer, start: number, end: number, content: string): Stencil | undefined {
    if (end - start > LARGEST) return undefined;
    // In Latin-1 a character is a byte, so places are the same; what it makes of other letters does not matter, because structure is ASCII.
    const event = bytes.toString('latin1', start, end);
    for (const key of event.matchAll(/"content"\s*:\s*"/g)) {
      const before = event.slice(0, key.index + key[0].length);
      const rest = event.slice(before.length).replace(/^(?:[^"\\]|\\.)*/, '');
      const [, after, last] = /^(.*"\s*:\s*")[^"\\]*("\s*\}\s*)$/s.exec(rest) ?? [];
      if (after !== undefined && last !== undefined && prove(content, before, after, last))
        return new Stencil(before, after, last);
      if (prove(content, before, rest, undefined)) return new Stencil(before, rest, undefined);
    }
    return undefined;
  }

  /** The piece of text that the event is, or undefined where it has another shape, or no text. */
  read(bytes: Buffer, start: number, end: number): EscapedText | undefined {
    const from = start + this.#before.length;
    if (from >= end || bytes.compare(this.#before, 0, this.#before.length, start, from) !== 0) return undefined;
    let hasEscapes = false;
    let isAscii = true;
    let to = from;
    for (;;) {
      const byte = bytes[to] as number;
      if (byte === QUOTE) break;
      if (byte < FIRST_PRINTABLE) return undefined;
      if (byte === BACKSLASH) {
        const length = escapeLength(bytes, to);
        if (length === 0) return undefined;
        hasEscapes = true;
        to += length;
      } else {
        if (byte > LAST_ASCII) isAscii = false;
        to += 1;
      }
      if (to >= end) return undefined;
    }
    if (to === from || !this.#isRest(bytes, to, end)) return undefined;
    return new EscapedText(bytes.toString(isAscii ? 'latin1' : 'utf8', from, to), hasEscapes);
  }

  /** Whether what begins with the quote behind the content is as it should be. */
  #isRest(bytes: Buffer, start: number, end: number): boolean {
    const padding = start + this.#after.length;
    if (padding > end || bytes.compare(this.#after, 0, this.#after.length, start, padding) !== 0) return false;
    if (this.#last === undefined) return padding === end;
    const last = end - this.#last.length;
    if (last < padding || bytes.compare(this.#last, 0, this.#last.length, last, end) !== 0) return false;
    for (let i = padding; i < last; i++) {
      const byte = bytes[i] as number;
      if (byte < FIRST_PRINTABLE || byte === QUOTE || byte === BACKSLASH) return false;
    }
    return true;
  }
}

/**
 * Whether the string between `before` and `after` is what is read as content, and the padding, if there is one, a top-level member that is
 * not read at all: both are replaced, and must be found where they are looked for.
 */
function prove(content: string, before: string, after: string, last: string | undefined): boolean {
  const probe = content === 'a' ? 'b' : 'a';
  const padding = 'padding';
  const event = JSON.parse(before + probe + after + (last === undefined ? '' : padding + last));
  if (event.choices[0].delta?.content !== probe) return false;
  if (last === undefined) return true;
  const [key, value] = Object.entries(event).at(-1) ?? [];
  return key !== 'error' && value === padding;
}

/** How many bytes the escape has that begins at the backslash; 0 where it is none that JSON knows. */
function escapeLength(bytes: Buffer, start: number): 0 | 2 | 6 {
  const kind = bytes[start + 1] as number;
  if (kind !== SMALL_U) return SIMPLE_ESCAPES.has(kind) ? 2 : 0;
  for (let i = start + 2; i < start + 6; i++) if (!isHexDigit(bytes[i] as number)) return 0;
  return 6;
}

const SIMPLE_ESCAPES: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

function isHexDigit(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 70) || (byte >= 97 && byte <= 102);
}
