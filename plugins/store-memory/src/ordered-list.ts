/** Items of a chunk, at most. A million items are in about a thousand chunks. */
const MAX_CHUNK = 1024;

/**
 * Items in an order, for lists that are read page by page. A page costs what it shows, and the
 * search for its start. A change moves the items of one chunk.
 */
export class OrderedList<T> {
  /** In order, none of them empty. */
  readonly #chunks: T[][] = [];
  readonly #compare: (a: T, b: T) => number;
  #size = 0;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#chunks[0]?.[0];
  }

  add(item: T): void {
    const place = this.#search((one) => this.#compare(one, item) < 0);
    // An item between two chunks is added to the earlier one.
    const [at, index] =
      place.index === 0 && place.chunk > 0 ? [place.chunk - 1, Number.POSITIVE_INFINITY] : [place.chunk, place.index];
    const chunk = this.#chunks[at];
    this.#size++;
    if (!chunk) this.#chunks.push([item]);
    else {
      chunk.splice(index, 0, item);
      if (chunk.length > MAX_CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(MAX_CHUNK / 2));
    }
  }

  /** Its place in the order must still be the one with which it was added. */
  delete(item: T): void {
    const { chunk: at, index } = this.#search((one) => this.#compare(one, item) < 0);
    const chunk = this.#chunks[at];
    if (chunk?.[index] !== item) return;
    chunk.splice(index, 1);
    this.#size--;
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** In order, without the first items, for which `skips` is true. */
  *ascending(skips: (item: T) => boolean): Generator<T, undefined> {
    let { chunk: at, index } = this.#search(skips);
    for (; at < this.#chunks.length; at++, index = 0) {
      const chunk = this.#chunks[at] ?? [];
      for (; index < chunk.length; index++) yield chunk[index] as T;
    }
  }

  /** In reverse order, without the last items, for which `skips` is true. */
  *descending(skips: (item: T) => boolean): Generator<T, undefined> {
    const start = this.#search((item) => !skips(item));
    for (let at = start.chunk; at >= 0; at--) {
      const chunk = this.#chunks[at] ?? [];
      for (let index = at === start.chunk ? start.index : chunk.length; index > 0; index--) yield chunk[index - 1] as T;
    }
  }

  /** The place of the first item that does not fulfil the condition, which all before it do. */
  #search(isBefore: (item: T) => boolean): { readonly chunk: number; readonly index: number } {
    const chunk = count(this.#chunks, (items) => isBefore(items.at(-1) as T));
    return { chunk, index: count(this.#chunks[chunk] ?? [], isBefore) };
  }
}

/** How many items at the start fulfil the condition, which all others do not. */
function count<T>(items: readonly T[], isCounted: (item: T) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isCounted(items[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low;
}
