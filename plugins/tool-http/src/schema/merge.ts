import { fieldsOf } from '../document/fields.js';
import type { Schema } from './keywords.js';

/**
 * Joins schemas that all apply (`allOf`, and what is beside a `$ref`) to one. Where they contradict
 * each other, the later one holds: the result never accepts less than all of them.
 */
export function merge(schemas: readonly Schema[]): Schema {
  const [first = {}, ...others] = schemas;
  if (others.length === 0) return first;
  const joined: Record<string, unknown> = {};
  const properties = new Map<string, Schema[]>();
  const required = new Set<unknown>();
  for (const schema of schemas) {
    const type = commonTypes(joined.type, schema.type);
    Object.assign(joined, schema, type === undefined ? {} : { type });
    for (const name of (schema.required as readonly string[] | undefined) ?? []) required.add(name);
    for (const [name, property] of Object.entries(fieldsOf(schema.properties))) {
      const known = properties.get(name);
      if (known) known.push(fieldsOf(property));
      else properties.set(name, [fieldsOf(property)]);
    }
  }
  if (joined.properties !== undefined)
    joined.properties = Object.fromEntries([...properties].map(([name, parts]) => [name, merge(parts)]));
  if (required.size > 0) joined.required = [...required];
  if (joined.anyOf !== undefined && joined.additionalProperties === false) delete joined.additionalProperties;
  return joined;
}

/** The later types if they have none in common. */
function commonTypes(a: unknown, b: unknown): unknown {
  if (a === undefined || b === undefined) return a ?? b;
  const others = new Set([b].flat());
  const common = [a].flat().filter((type) => others.has(type));
  if (common.length === 0) return b;
  return common.length === 1 ? common[0] : common;
}
