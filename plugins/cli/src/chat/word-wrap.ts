/** A character of two columns: East Asian scripts and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
/** A character without a width: accents, joiners. */
const NARROW = /\p{Mn}|\p{Cf}/u;
const FENCE = /^\s*(```|~~~)/;

/**
 * Writes text to a terminal as it arrives, and breaks its lines between words. A word that grows
 * beyond the edge is moved to the next line. Code between fences is left to the terminal.
 */
export class WordWrap {
  readonly #write: (text: string) => void;
  readonly #columns: () => number;
  #column = 0;
  /** The word that is being written, and its width. */
  #word = '';
  #wordWidth = 0;
  /** The text of the line so far, as the model wrote it. */
  #line = '';
  #isCode = false;

  /** @param columns the width of the terminal, which can change. */
  constructor(write: (text: string) => void, columns: () => number) {
    this.#write = write;
    this.#columns = columns;
  }

  write(text: string): void {
    for (const piece of text.split(/([ \t\n])/)) {
      if (piece === '\n') this.#breakLine();
      else if (piece === ' ' || piece === '\t') this.#space(piece);
      else if (piece !== '') this.#letters(piece);
    }
  }

  #breakLine(): void {
    if (FENCE.test(this.#line)) this.#isCode = !this.#isCode;
    this.#line = '';
    this.#next('\n');
  }

  #space(space: string): void {
    this.#line += space;
    this.#word = '';
    this.#wordWidth = 0;
    if (!this.#isCode && this.#column >= this.#edge) {
      this.#next('\n');
    } else {
      this.#column += 1;
      this.#write(space === '\t' && !this.#isCode ? ' ' : space);
    }
  }

  #letters(letters: string): void {
    this.#line += letters;
    const width = widthOf(letters);
    const isWhole = this.#wordWidth + width <= this.#edge && this.#wordWidth < this.#column;
    if (!this.#isCode && isWhole && this.#column + width > this.#edge) {
      const before = this.#word;
      const moved = this.#wordWidth;
      if (moved > 0) this.#write(`\x1b[${moved}D\x1b[K`);
      this.#next(`\n${before}`);
      this.#word = before;
      this.#wordWidth = moved;
      this.#column = moved;
    }
    this.#word += letters;
    this.#wordWidth += width;
    this.#column += width;
    this.#write(letters);
  }

  #next(text: string): void {
    this.#write(text);
    this.#column = 0;
    this.#word = '';
    this.#wordWidth = 0;
  }

  /** The last column stays free: a terminal that is full to the edge has no certain cursor. */
  get #edge(): number {
    return Math.max(1, this.#columns() - 1);
  }
}

function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += WIDE.test(character) ? 2 : NARROW.test(character) ? 0 : 1;
  return width;
}
