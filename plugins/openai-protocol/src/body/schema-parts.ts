import type { SchemaObject } from 'ajv';
import { METADATA_LIMITS } from './request-metadata.js';

/**
 * Building blocks of request schemas. `title` is the expectation in error messages, where the type
 * alone is not enough.
 */

/** A nested field that may be null, which counts as absent. */
export const maybe = (schema: SchemaObject): SchemaObject => ({ ...schema, nullable: true });

export const text: SchemaObject = { type: 'string' };
export const flag: SchemaObject = { type: 'boolean' };
export const anyObject: SchemaObject = { type: 'object' };

export const word = (...words: string[]): SchemaObject => ({ type: 'string', enum: words });
export const integer = (minimum: number, maximum: number): SchemaObject => ({ type: 'integer', minimum, maximum });
export const decimal = (minimum: number, maximum: number): SchemaObject => ({ type: 'number', minimum, maximum });

export function object(properties: Record<string, SchemaObject>, required: readonly string[] = []): SchemaObject {
  return { type: 'object', properties, required };
}

/** An object of one of several shapes, selected by the string property `tag`. */
export function tagged(
  tag: string,
  shapes: Record<string, { properties: Record<string, SchemaObject>; required: readonly string[] }>,
) {
  return {
    type: 'object',
    required: [tag],
    discriminator: { propertyName: tag },
    oneOf: Object.entries(shapes).map(([value, { properties, required }]) => ({
      properties: { [tag]: { const: value }, ...properties },
      required,
    })),
  } satisfies SchemaObject;
}

export const shape = (properties: Record<string, SchemaObject>, required: readonly string[] = Object.keys(properties)) => ({
  properties,
  required,
});

export const name: SchemaObject = { type: 'string', maxLength: 64, pattern: '^[a-zA-Z0-9_-]+$' };

/** One of a few strings, or an object. */
export const wordOr = (words: SchemaObject, other: SchemaObject): SchemaObject => ({
  if: { type: 'string' },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, never awaited
  then: words,
  else: { title: 'one of a string or object', ...other },
});

/** The field `metadata`. */
export const metadata: SchemaObject = {
  title: 'a metadata object',
  type: 'object',
  maxProperties: METADATA_LIMITS.pairs,
  propertyNames: { maxLength: METADATA_LIMITS.name },
  additionalProperties: { type: 'string', maxLength: METADATA_LIMITS.value },
};
