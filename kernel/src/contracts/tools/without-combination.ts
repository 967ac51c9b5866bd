/** A JSON Schema. */
type Schema = Readonly<Record<string, unknown>>;

/**
 * Replaces a combination (`anyOf`, `oneOf`, `allOf`) at the top level of a tool's input schema,
 * which OpenAI, Anthropic and others refuse, by one object with the properties of all branches. The
 * tool itself still validates its arguments with the schema as it is. Returns the schema itself if
 * it has none.
 *
 * @public
 */
export function withoutCombination(schema: Schema): Schema {
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const branches = [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list.filter(isSchema) : []));
  if (branches.length === 0) return schema;
  const all = [rest, ...branches];
  // Not `Object.assign`: a property may have the name __proto__.
  const properties = Object.fromEntries(all.flatMap((one) => (isSchema(one.properties) ? Object.entries(one.properties) : [])));
  // What only some branches require is left to the tool, which validates its arguments.
  const always = [rest, ...(Array.isArray(allOf) ? allOf.filter(isSchema) : [])];
  const required = always.flatMap((one) => (Array.isArray(one.required) ? one.required : []));
  return { ...rest, type: 'object', properties, ...(required.length > 0 ? { required: [...new Set(required)] } : {}) };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
