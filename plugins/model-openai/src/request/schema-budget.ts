type Schema = Readonly<Record<string, unknown>>;

const KIB = 1024;
const MIN_DEPTH = 3;
/** Bytes that a part of a schema counts besides its members. */
const PART = 32;
/** Keywords whose value consists of schemas, which count themselves when they are translated. */
const HOLDERS: ReadonlySet<string> = new Set([
  ...['properties', 'items', 'additionalProperties', 'anyOf', 'oneOf', 'allOf', 'prefixItems', '$defs', 'definitions'],
]);

/**
 * Counts what the translated schemas of one request take, while they are translated: references
 * that name each other twice double with each level, so a schema of 2 KB may become one of
 * gigabytes (S-49).
 */
export class SchemaBudget {
  /** How deep references are replaced. A schema that refers to itself ends there. */
  depth = 12;
  readonly #source: unknown;
  /** Counted when it is needed: most servers take schemas as they are. */
  #limit: number | undefined;
  #used = 0;
  readonly #sizes = new WeakMap<object, number>();

  /** @param source the schemas of the request: four times their JSON and 256 KiB, 4 MiB at most. */
  constructor(source: unknown) {
    this.#source = source;
  }

  /**
   * Translates a schema. One that is too large with all its references, as schemas that refer to
   * themselves in several places are, is translated again with fewer levels of them; so are the
   * further schemas of the request, which bounds the work.
   *
   * @throws SchemaTooLarge if it is too large with few levels as well.
   */
  translate<T>(work: () => T): T {
    const used = this.#used;
    try {
      return work();
    } catch (error) {
      if (!(error instanceof SchemaTooLarge) || this.depth <= MIN_DEPTH) throw error;
      this.depth /= 2;
      this.#used = used;
      return this.translate(work);
    }
  }

  /** Counts a part of a schema, without the schemas in it. @throws SchemaTooLarge */
  take(schema: Schema): void {
    this.#used += PART;
    for (const [key, value] of Object.entries(schema)) this.#used += key.length + this.#sizeOf(key, value);
    this.#limit ??= Math.min(4 * JSON.stringify(this.#source).length + 256 * KIB, 4 * KIB * KIB);
    if (this.#used > this.#limit) throw new SchemaTooLarge(this.#limit);
  }

  #sizeOf(key: string, value: unknown): number {
    if (typeof value === 'string') return value.length;
    if (typeof value !== 'object' || value === null) return 8;
    let size = this.#sizes.get(value);
    if (size === undefined) {
      size = HOLDERS.has(key) ? 8 * Object.keys(value).length : JSON.stringify(value).length;
      this.#sizes.set(value, size);
    }
    return size;
  }
}

/** A schema becomes too large when it is translated. */
export class SchemaTooLarge extends Error {
  override readonly name = 'SchemaTooLarge';

  /** @param limit in bytes. */
  constructor(readonly limit: number) {
    super(`more than ${Math.ceil(limit / KIB)} KiB with its references replaced`);
  }
}
