import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { printable } from './printable.js';

const START = '\x1b[200~';
const END = '\x1b[201~';

/** Asks a terminal to mark pasted text, or no longer to. */
export const BRACKETED_PASTE = { on: '\x1b[?2004h', off: '\x1b[?2004l' } as const;

/** A terminal's input, as readline uses it. */
interface TerminalInput extends NodeJS.ReadableStream {
  setRawMode?(mode: boolean): unknown;
}

/**
 * Stands between a terminal and readline, for which every line break ends a message. Pasted text of
 * several lines is kept apart, and the line shows `[pasted text 1, 12 lines]` in its place. Control
 * characters in it are no keys, and are removed.
 */
export class PasteFilter extends Transform {
  readonly isTTY = true;
  readonly #terminal: TerminalInput;
  readonly #decoder = new StringDecoder('utf8');
  readonly #pasted = new Map<string, string>();
  /** What was read and is not passed on yet. */
  #rest = '';

  constructor(terminal: TerminalInput) {
    super();
    this.#terminal = terminal;
    terminal.pipe(this);
  }

  setRawMode(mode: boolean): this {
    this.#terminal.setRawMode?.(mode);
    return this;
  }

  /** Puts the pasted texts back into a line. */
  restore(line: string): string {
    return line.replace(/\[pasted text \d+, \d+ lines\]/g, (mark) => this.#pasted.get(mark) ?? mark);
  }

  override _transform(chunk: Buffer, _: string, done: TransformCallback): void {
    this.#rest += this.#decoder.write(chunk);
    while (this.#passOn());
    done();
  }

  /** Passes on the next paste, or what comes before it. @returns whether there may be more. */
  #passOn(): boolean {
    const start = this.#rest.indexOf(START);
    if (start === 0) {
      const end = this.#rest.indexOf(END);
      if (end < 0) return false; // the rest of the paste comes with later reads
      const pasted = this.#rest.slice(START.length, end);
      this.#rest = this.#rest.slice(end + END.length);
      this.push(this.#shown(pasted));
      return true;
    }
    const length = start < 0 ? this.#rest.length - partialMarker(this.#rest) : start;
    if (length > 0) this.push(this.#rest.slice(0, length));
    this.#rest = this.#rest.slice(length);
    return start > 0;
  }

  #shown(pasted: string): string {
    // A terminal sends line breaks as the Enter key does.
    const text = printable(stripVTControlCharacters(pasted.replace(/\r\n?/g, '\n'))).replace(/(?<!\n)\n+$/, '');
    const lines = text.split('\n').length;
    if (lines === 1) return text;
    const mark = `[pasted text ${this.#pasted.size + 1}, ${lines} lines]`;
    this.#pasted.set(mark, text);
    return mark;
  }
}

/** Characters at the end that may begin a marker. The Escape key alone waits for the next key. */
function partialMarker(text: string): number {
  for (let length = START.length - 1; length > 0; length--) if (text.endsWith(START.slice(0, length))) return length;
  return 0;
}
