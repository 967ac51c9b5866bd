/** Joins halves of a character (`\ud83d\ude00`), which a server may send in separate chunks. */
export class WholeText {
  /** The first half of a character, until the second one arrives. */
  #half = '';

  /** Whether the first half of a character is held back. */
  get isSplit(): boolean {
    return this.#half !== '';
  }

  /** Returns the text up to its last whole character. */
  add(text: string): string {
    const all = this.#half + text;
    this.#half = isFirstHalf(all.charCodeAt(all.length - 1)) ? all.slice(-1) : '';
    return all.slice(0, all.length - this.#half.length);
  }

  /** Returns what is left: U+FFFD for a half that nothing has followed. */
  end(): string {
    const rest = this.#half.toWellFormed();
    this.#half = '';
    return rest;
  }
}

function isFirstHalf(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
