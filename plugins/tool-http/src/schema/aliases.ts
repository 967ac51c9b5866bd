import { createHash } from 'node:crypto';

/** What providers accept as the key of a property. */
const ACCEPTED = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_READABLE = 57;

/**
 * The keys of one operation that providers refuse, such as `page[size]`, and the aliases that the
 * model sees in their place (OAS-5). An alias depends on its key alone.
 */
export class Aliases {
  readonly #keys = new Map<string, string>();
  readonly #aliases = new Map<string, string>();

  /** The key itself, or its alias: `page_size_6f1a2c`. */
  of(key: string): string {
    if (ACCEPTED.test(key) && key !== '__proto__') return key;
    const known = this.#aliases.get(key);
    if (known !== undefined) return known;
    const readable = key
      .slice(0, MAX_READABLE)
      .replace(/[^A-Za-z0-9-]+/g, '_')
      .replace(/_$/, '');
    const alias = `${readable}_${createHash('sha256').update(key).digest('hex').slice(0, 6)}`;
    const own = structuredClone(key); // a part of the document would keep all of it
    this.#aliases.set(own, alias);
    this.#keys.set(alias, own);
    return alias;
  }

  /** The key behind an alias; any other text itself. */
  keyOf(alias: string): string {
    return this.#keys.get(alias) ?? alias;
  }

  /** The keys behind the aliases in a value, at any depth. */
  restore(value: unknown): unknown {
    if (this.#keys.size === 0 || typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.restore(item));
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.keyOf(key), this.restore(item)]));
  }
}
