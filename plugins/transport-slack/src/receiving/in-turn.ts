/** Runs work one after the other for each key. */
export class InTurn {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves, or rejects, as the work does. */
  async run(key: string, work: () => Promise<void>): Promise<void> {
    const before = this.#last.get(key);
    const own = (async () => {
      await before?.catch(() => {}); // its own caller has the error
      await work();
    })();
    this.#last.set(key, own);
    try {
      await own;
    } finally {
      if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}
