const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines, and keeps no more than `limit` bytes of any of them. */
export class LineSplitter {
  readonly #limit: number;
  readonly #onLine: (line: string, cut: boolean) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #cut = false;

  /** @param onLine is given each line without its end; `cut` where it was longer than the limit, and only its beginning is there. */
  constructor(limit: number, onLine: (line: string, cut: boolean) => void) {
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

  /** The stream has ended: what stands after the last newline is a line too. */
  end(): void {
    if (this.#parts.length > 0) this.#flush();
  }

  #keep(part: Buffer): void {
    const room = this.#limit - this.#size;
    if (part.length > room) this.#cut = true;
    const kept = part.subarray(0, room);
    this.#size += kept.length;
    if (kept.length > 0) this.#parts.push(kept);
  }

  #flush(): void {
    const line = Buffer.concat(this.#parts, this.#size).toString('utf8');
    const cut = this.#cut;
    this.#parts = [];
    this.#size = 0;
    this.#cut = false;
    this.#onLine(line.endsWith('\r') ? line.slice(0, -1) : line, cut);
  }
}
