/** A JSON Schema of a request body, or of a part of it. */
export type RequestSchema = Readonly<Record<string, unknown>>;

/** The schema of an object. */
export interface ObjectSchema extends RequestSchema {
  readonly properties: Readonly<Record<string, RequestSchema>>;
}

/** Building blocks of request schemas. `title` says what is expected, where the type does not. */

/** A nested field that may be null, which counts as absent. */
export const maybe = (schema: RequestSchema): RequestSchema => ({ ...schema, nullable: true });

export const text: RequestSchema = { type: 'string' };
export const flag: RequestSchema = { type: 'boolean' };
export const anyObject: RequestSchema = { type: 'object' };

export const word = (...words: string[]): RequestSchema => ({ type: 'string', enum: words });
export const integer = (minimum: number, maximum: number): RequestSchema => ({ type: 'integer', minimum, maximum });
export const decimal = (minimum: number, maximum: number): RequestSchema => ({ type: 'number', minimum, maximum });

export function object(properties: Record<string, RequestSchema>, required: readonly string[] = []): ObjectSchema {
  return { type: 'object', properties, required };
}

/** An object of one of several shapes, selected by the string property `tag`. */
export function tagged(
  tag: string,
  shapes: Record<string, { properties: Record<string, RequestSchema>; required: readonly string[] }>,
) {
  return {
    type: 'object',
    required: [tag],
    discriminator: { propertyName: tag },
    oneOf: Object.entries(shapes).map(([value, { properties, required }]) => ({
      properties: { [tag]: { const: value }, ...properties },
      required,
    })),
  } satisfies RequestSchema;
}

export const shape = (properties: Record<string, RequestSchema>, required: readonly string[] = Object.keys(properties)) => ({
  properties,
  required,
});

export const name: RequestSchema = { type: 'string', maxLength: 64, pattern: '^[a-zA-Z0-9_-]+$' };

/** One of a few strings, or an object. */
export const wordOr = (words: RequestSchema, other: RequestSchema): RequestSchema => ({
  if: { type: 'string' },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, never awaited
  then: words,
  else: { title: 'one of a string or object', ...other },
});

/** The field `metadata`. */
export const metadata: RequestSchema = {
  title: 'a metadata object',
  type: 'object',
  maxProperties: 16,
  propertyNames: { maxLength: 64 },
  additionalProperties: { type: 'string', maxLength: 512 },
};
