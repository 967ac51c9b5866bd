import { EscapedText } from './escaped-text.js';

const QUOTE = 34;
const BACKSLASH = 92;
const SMALL_U = 117;
const FIRST_PRINTABLE = 32;

/** Characters of an event from which a stencil is cut: one that is larger says so much that parsing it is no matter. */
const LARGEST = 8192;

/**
 * The shape that a model server gives to the events of one stream, as far as they are nothing but a piece of text: they are the same to the
 * character, apart from the content itself, and from the padding that some servers put in the last member against eavesdroppers. So such an event
 * needs not be parsed: where everything around matches, the content is cut out, still escaped.
 *
 *     {"id":"x","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"obfuscation":"aB3x"}
 *     └─────────────────── before ───────────────────────┘└ text ┘└────────────── after ──────────────┘└pad┘└┘ last
 *
 * Why this is exact: the shape is cut from an event that was parsed, and put to the proof (`prove`). In what is valid JSON, another valid
 * string in the place of a string changes the value at that place and nothing else.
 */
export class Stencil {
  readonly #before: string;
  readonly #after: string;
  /** What follows the padding; undefined where there is none. */
  readonly #last: string | undefined;

  private constructor(before: string, after: string, last: string | undefined) {
    this.#before = before;
    this.#after = after;
    this.#last = last;
  }

  /**
   * Cuts a stencil from an event, where that can be done.
   *
   * @param content what the event was found to say, and the only thing that it says.
   */
  static cut(event: string, content: string): Stencil | undefined {
    if (event.length > LARGEST) return undefined;
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
  read(event: string): EscapedText | undefined {
    const from = this.#before.length;
    // Slices are compared much faster than `startsWith` does it.
    if (event.slice(0, from) !== this.#before) return undefined;
    let hasEscapes = false;
    let to = from;
    for (;;) {
      const char = event.charCodeAt(to);
      if (char === QUOTE) break;
      if (char === BACKSLASH) {
        const length = escapeLength(event, to);
        if (length === 0) return undefined;
        hasEscapes = true;
        to += length;
      } else if (char >= FIRST_PRINTABLE) to += 1;
      else return undefined; // also at the end, where it is NaN
    }
    if (to === from || !this.#isRest(event, to)) return undefined;
    return new EscapedText(event.slice(from, to), hasEscapes);
  }

  /** Whether what begins with the quote behind the content is as it should be. */
  #isRest(event: string, start: number): boolean {
    if (this.#last === undefined) return event.slice(start) === this.#after;
    const padding = start + this.#after.length;
    const last = event.length - this.#last.length;
    if (last < padding || event.slice(start, padding) !== this.#after || event.slice(last) !== this.#last) return false;
    for (let i = padding; i < last; i++) {
      const char = event.charCodeAt(i);
      if (char < FIRST_PRINTABLE || char === QUOTE || char === BACKSLASH) return false;
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

/** How many characters the escape has that begins at the backslash; 0 where it is none that JSON knows. */
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
