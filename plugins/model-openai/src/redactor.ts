/** How much of a model server's own words is passed on. */
const LONGEST = 500;
/** A value that is shorter is no secret, and would be found in the middle of ordinary words. */
const SHORTEST_VALUE = 4;
const SHORTEST_WORD = 8;

/** Makes a model server's words fit for callers: what the configuration keeps secret is taken out, and the rest is cut. */
export class Redactor {
  readonly #secrets: readonly string[];

  /** @param values keys, headers, the server's address. The long words of a value, as in `Bearer …`, are taken out by themselves too. */
  constructor(values: readonly string[]) {
    const words = values.flatMap((value) => value.split(/\s+/)).filter((word) => word.length >= SHORTEST_WORD);
    const secrets = new Set([...values.filter((value) => value.length >= SHORTEST_VALUE), ...words]);
    // The longest first, so that none is left in half because a shorter one is part of it.
    this.#secrets = [...secrets].sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, '***');
    clean = clean.replaceAll(/\s+/g, ' ').trim();
    return clean.length > LONGEST ? `${clean.slice(0, LONGEST - 1)}…` : clean;
  }
}
