import type { OpenApiDocument } from '../document/document.js';
import { type Fields, fieldsOf, isFields, listOf } from '../document/fields.js';
import type { Aliases } from './aliases.js';
import { keywordsOf, nullable, type Schema } from './keywords.js';
import { merge } from './merge.js';

/** Schemas, and values of enumerations, that one converted schema may have. */
export const MAX_PARTS = 1_000;
/** Levels, tried until the result is small enough. What is deeper is reduced to its type. */
const LEVELS = [24, 6, 3, 1] as const;

class TooLarge extends Error {}

/**
 * Converts schemas of a document to schemas for a model (OAS-1 to OAS-3).
 *
 * 1. A `$ref` is replaced by what it refers to. One inside of itself is reduced to its type, so a
 *    circle ends; the same schema beside it stays whole.
 * 2. `allOf` is merged to one schema. `oneOf` becomes `anyOf`, because what was reduced may match
 *    several.
 * 3. What only a response has (`readOnly`) is left out, and keywords that mean nothing to a model.
 * 4. The document is not changed. The result may share lists, such as those of `enum`, with it.
 */
export class SchemaConverter {
  readonly #document: OpenApiDocument;
  readonly #aliases: Aliases;
  /** The schemas around the current one. */
  readonly #open = new Set<object>();
  readonly #maxParts: number;
  #parts = 0;

  constructor(document: OpenApiDocument, aliases: Aliases, maxParts = MAX_PARTS) {
    this.#document = document;
    this.#aliases = aliases;
    this.#maxParts = maxParts;
  }

  /** @throws OperationFault if a reference is not in the document. */
  convert(source: unknown): Schema {
    for (const levels of LEVELS) {
      this.#parts = 0;
      this.#open.clear();
      try {
        return this.#part(source, levels);
      } catch (error) {
        if (!(error instanceof TooLarge)) throw error;
      }
    }
    this.#parts = 0;
    return this.#reduced(source);
  }

  #part(source: unknown, levels: number): Schema {
    if (!isFields(source)) return source === false ? { not: {} } : {};
    if (levels <= 0 || this.#open.has(source)) return this.#reduced(source);
    this.#count(1 + listOf(source.enum).length);
    this.#open.add(source);
    try {
      const merged = merge([
        ...this.#linked(source).map((part) => this.#part(part, levels - 1)),
        { ...keywordsOf(source), ...this.#nested(source, levels - 1) },
      ]);
      return source.nullable === true ? nullable(merged) : merged;
    } finally {
      this.#open.delete(source);
    }
  }

  /** The type of a schema, and what else is said without other schemas. */
  #reduced(source: unknown): Schema {
    this.#count(1);
    const parts: Schema[] = [];
    let node: unknown = source;
    for (let links = 0; isFields(node) && links < LEVELS[0]; links++) {
      parts.unshift(keywordsOf(node));
      node = this.#linked(node)[0];
    }
    const { required: _, ...merged } = merge(parts);
    const whole = merged.type === 'array' ? { ...merged, items: {} } : merged;
    return fieldsOf(source).nullable === true ? nullable(whole) : whole;
  }

  /** The schemas that apply besides. */
  #linked({ $ref, allOf }: Fields): readonly unknown[] {
    return [...(typeof $ref === 'string' ? [this.#document.target($ref)] : []), ...listOf(allOf)];
  }

  #nested(source: Fields, levels: number): Schema {
    const { properties, additionalProperties, patternProperties, items, prefixItems, anyOf, oneOf } = source;
    const found: Record<string, unknown> = {};
    if (isFields(properties)) Object.assign(found, this.#properties(source, levels));
    const choices = [...listOf(anyOf), ...(anyOf === undefined ? listOf(oneOf) : [])];
    if (choices.length > 0) found.anyOf = choices.map((choice) => this.#part(choice, levels));
    if (isFields(additionalProperties)) found.additionalProperties = this.#part(additionalProperties, levels);
    else if (additionalProperties === true) found.additionalProperties = true;
    else if (additionalProperties === false && patternProperties === undefined && choices.length === 0)
      found.additionalProperties = false;
    if (isFields(items)) found.items = this.#part(items, levels);
    if (Array.isArray(prefixItems) && prefixItems.length > 0)
      found.prefixItems = prefixItems.map((item) => this.#part(item, levels));
    // Providers refuse a list without `items`.
    if (found.items === undefined && [source.type].flat().includes('array')) found.items = {};
    return found;
  }

  #properties({ properties, required }: Fields, levels: number): Schema {
    const sent = Object.entries(fieldsOf(properties)).filter(([, schema]) => !this.#isReadOnly(schema));
    const names = new Set(sent.map(([name]) => name));
    const needed = [...new Set(listOf(required))].filter((name) => typeof name === 'string').filter((name) => names.has(name));
    return {
      properties: Object.fromEntries(sent.map(([name, schema]) => [this.#aliases.of(name), this.#part(schema, levels)])),
      ...(needed.length > 0 && { required: needed.map((name) => this.#aliases.of(name)) }),
    };
  }

  #isReadOnly(schema: unknown): boolean {
    const { readOnly, $ref } = fieldsOf(schema);
    return readOnly === true || (typeof $ref === 'string' && fieldsOf(this.#document.target($ref)).readOnly === true);
  }

  #count(parts: number): void {
    this.#parts += parts;
    if (this.#parts > this.#maxParts) throw new TooLarge();
  }
}
