import type { JsonSchema } from './schema-types.js';

/** The innermost faulty part of a schema, as `properties.words.items`; empty if it is the whole. */
export function faultyPart(schema: JsonSchema, compile: (part: JsonSchema) => void): readonly string[] {
  for (const [path, part] of parts(schema)) {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return path;
    try {
      compile(part as JsonSchema);
    } catch {
      return [...path, ...faultyPart(part as JsonSchema, compile)];
    }
  }
  return [];
}

/** The schemas directly inside a schema, with their places. */
function parts(schema: JsonSchema): (readonly [readonly string[], unknown])[] {
  const { properties = {}, items, additionalProperties, propertyNames, anyOf = [], oneOf = [] } = schema;
  return [
    ...Object.entries(properties).map(([name, part]) => [['properties', name], part] as const),
    ...(items === undefined ? [] : [[['items'], items] as const]),
    ...(typeof additionalProperties === 'object' ? [[['additionalProperties'], additionalProperties] as const] : []),
    ...(propertyNames === undefined ? [] : [[['propertyNames'], propertyNames] as const]),
    ...Object.entries(anyOf).map(([index, part]) => [['anyOf', index], part] as const),
    ...Object.entries(oneOf).map(([index, part]) => [['oneOf', index], part] as const),
  ];
}
