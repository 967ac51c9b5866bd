const NEWLINE = 0x0a;

/** Splits a stream of bytes into lines. Keeps at most `limit` bytes of a line. */
export class LineSplitter {
  readonly #limit: number;
  readonly #onLine: (line: string, isCut: boolean) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #isCut = false;

  /**
   * @param onLine receives each line without its end. `isCut`: it was longer than the limit, and
   * only its beginning is there.
   */
  constructor(limit: number, onLine: (line: string, isCut: boolean) => void) {
    this.#limit = limit;
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      this.#flush();
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** To call at the end of the stream: text after the last newline is a line, too. */
  end(): void {
    if (this.#parts.length > 0) this.#flush();
  }

  #keep(part: Buffer): void {
    const left = this.#limit - this.#size;
    if (part.length > left) this.#isCut = true;
    const kept = part.subarray(0, left);
    this.#size += kept.length;
    if (kept.length > 0) this.#parts.push(kept);
  }

  #flush(): void {
    const line = Buffer.concat(this.#parts, this.#size).toString('utf8');
    const isCut = this.#isCut;
    this.#parts = [];
    this.#size = 0;
    this.#isCut = false;
    this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line, isCut);
  }
}
