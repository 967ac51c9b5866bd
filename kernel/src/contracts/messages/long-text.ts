/** Pieces that are joined at once. */
const JOINED_PIECES = 1024;

/**
 * A text that arrives in many small pieces. V8 keeps a string that was concatenated piece by piece
 * as a tree of several times its size. Here the pieces are joined 1,024 at a time.
 *
 * @experimental
 */
export class LongText {
  readonly #chunks: string[] = [];
  #pieces: string[] = [];

  add(piece: string): void {
    if (this.#pieces.push(piece) < JOINED_PIECES) return;
    this.#chunks.push(this.#pieces.join(''));
    this.#pieces = [];
  }

  /** The whole text. */
  toString(): string {
    return this.#chunks.join('') + this.#pieces.join('');
  }
}
