type Schema = Readonly<Record<string, unknown>>;

/**
 * The arguments of a call as they run, as JSON: with the defaults of the tool's schema, and the
 * properties in its order. A person decides about this text (S-74).
 */
export function completeArguments(input: Readonly<Record<string, unknown>>, schema: Schema): string {
  return JSON.stringify(inOrder(input, schema));
}

function inOrder(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { properties, items } = record(schema);
  if (Array.isArray(value)) return value.map((item: unknown) => inOrder(item, items));
  const known = record(properties);
  const names = [...Object.keys(known).filter((name) => Object.hasOwn(value, name))];
  const others = Object.keys(value).filter((name) => !Object.hasOwn(known, name));
  const fields = value as Schema;
  return Object.fromEntries([...names, ...others].map((name) => [name, inOrder(fields[name], known[name])]));
}

function record(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}
