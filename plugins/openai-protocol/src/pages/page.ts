/** What fits on one page of a list. */
interface PageLimits {
  /** Number of entries. */
  readonly limit: number;
  /** Size of the entries as JSON. The first entry fits whatever its size. */
  readonly maxBytes: number;
}

/** A page of a list, as in the reference protocol, built entry by entry. */
export class Page {
  readonly #limits: PageLimits;
  /** The entries as JSON. */
  readonly #texts: string[] = [];
  #bytes = 0;
  #firstId: string | null = null;
  #lastId: string | null = null;
  #hasMore = false;

  constructor(limits: PageLimits) {
    this.#limits = limits;
  }

  /** Bytes that are left for further entries. */
  get bytesLeft(): number {
    return this.#limits.maxBytes - this.#bytes;
  }

  /**
   * Adds an entry.
   * @param cursor what the next page begins after: its id, unless its place in the list may change.
   * @returns false if the page is full: the entry belongs on the next one.
   */
  add(entry: { readonly id: string }, cursor = entry.id): boolean {
    const { limit, maxBytes } = this.#limits;
    const text = this.#texts.length < limit ? JSON.stringify(entry) : undefined;
    const bytes = Buffer.byteLength(text ?? '');
    if (text === undefined || (this.#texts.length > 0 && this.#bytes + bytes > maxBytes)) {
      this.#hasMore = true;
      return false;
    }
    this.#texts.push(text);
    this.#bytes += bytes;
    this.#firstId ??= entry.id;
    this.#lastId = cursor;
    return true;
  }

  /** Returns the page as JSON. */
  toText(): string {
    const [first, last] = [JSON.stringify(this.#firstId), JSON.stringify(this.#lastId)];
    return `{"object":"list","data":[${this.#texts.join(',')}],"first_id":${first},"last_id":${last},"has_more":${this.#hasMore}}`;
  }
}
