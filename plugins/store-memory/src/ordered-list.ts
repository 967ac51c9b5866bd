/**
 * Items in an order, for lists that are read page by page. A page costs what it shows, and the
 * search for its start.
 */
export class OrderedList<T> {
  readonly #items: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    this.#items.splice(
      this.#count((one) => this.#compare(one, item) < 0),
      0,
      item,
    );
  }

  /** Its place in the order must still be the one with which it was added. */
  delete(item: T): void {
    const at = this.#count((one) => this.#compare(one, item) < 0);
    if (this.#items[at] === item) this.#items.splice(at, 1);
  }

  /** In order, without the first items, for which `skips` is true. */
  *ascending(skips: (item: T) => boolean): Generator<T, undefined> {
    for (let at = this.#count(skips); at < this.#items.length; at++) yield this.#items[at] as T;
  }

  /** In reverse order, without the last items, for which `skips` is true. */
  *descending(skips: (item: T) => boolean): Generator<T, undefined> {
    for (let at = this.#count((item) => !skips(item)); at > 0; at--) yield this.#items[at - 1] as T;
  }

  /** How many items at the start fulfil the condition, which all others do not. */
  #count(isCounted: (item: T) => boolean): number {
    let [low, high] = [0, this.#items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isCounted(this.#items[middle] as T)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
