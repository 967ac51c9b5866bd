/** How many characters of a model server's message are passed on. */
const MAX_LENGTH = 500;
/** A shorter value is not a secret, and would match inside ordinary words. */
const MIN_VALUE = 4;
const MIN_WORD = 8;

/** Removes configured secrets from a model server's messages and shortens them. */
export class Redactor {
  readonly #secrets: readonly string[];

  /** @param values keys, header values, the server's address. Long words of a value, as in `Bearer …`, are removed on their own too. */
  constructor(values: readonly string[]) {
    const words = values.flatMap((value) => value.split(/\s+/)).filter((word) => word.length >= MIN_WORD);
    const secrets = new Set([...values.filter((value) => value.length >= MIN_VALUE), ...words]);
    // Longest first: a shorter secret may be part of a longer one.
    this.#secrets = [...secrets].sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, '***');
    clean = clean.replaceAll(/\s+/g, ' ').trim();
    return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH - 1)}…` : clean;
  }
}
