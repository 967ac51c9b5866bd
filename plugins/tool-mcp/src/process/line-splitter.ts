const NEWLINE = 0x0a;

/** Bytes kept of both ends of a line that is too long. */
const END_SIZE = 2048;

/** A line over the limit: its beginning and its end. */
export interface CutLine {
  readonly beginning: string;
  readonly end: string;
}

/** Splits a stream of bytes into lines. Of a line over the limit it keeps the ends only. */
export class LineSplitter {
  readonly #limit: number;
  readonly #onLine: (line: string, cut: CutLine | undefined) => void;
  #parts: Buffer[] = [];
  #size = 0;
  /** The ends of a line that is too long. */
  #cut: { readonly beginning: Buffer; end: Buffer } | undefined;

  /**
   * @param onLine receives each line without its end; of one that was longer than the limit, as
   *   much of its beginning as was kept.
   */
  constructor(limit: number, onLine: (line: string, cut: CutLine | undefined) => void) {
    this.#limit = limit;
    this.#onLine = onLine;
  }

  /** Bytes that are held of the line whose end has not come. */
  get held(): number {
    return this.#size;
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
    if (this.#parts.length > 0 || this.#cut) this.#flush();
  }

  #keep(part: Buffer): void {
    if (this.#cut) {
      this.#cut.end = Buffer.concat([this.#cut.end, part.subarray(-END_SIZE)]).subarray(-END_SIZE);
    } else if (this.#size + part.length <= this.#limit) {
      this.#size += part.length;
      if (part.length > 0) this.#parts.push(part);
    } else {
      const line = Buffer.concat([...this.#parts, part]);
      this.#cut = {
        beginning: Buffer.from(line.subarray(0, Math.min(this.#limit, END_SIZE))),
        end: Buffer.from(line.subarray(-END_SIZE)),
      };
      this.#parts = [];
      this.#size = 0;
    }
  }

  #flush(): void {
    const cut = this.#cut && { beginning: this.#cut.beginning.toString(), end: this.#cut.end.toString() };
    const line = cut?.beginning ?? Buffer.concat(this.#parts, this.#size).toString('utf8');
    this.#parts = [];
    this.#size = 0;
    this.#cut = undefined;
    this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line, cut);
  }
}
