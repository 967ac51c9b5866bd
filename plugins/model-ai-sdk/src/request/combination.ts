import { type Fields, isObject } from '../json/json.js';

/**
 * Replaces a combination at the top level, which OpenAI, Anthropic and others refuse, by one object
 * with the properties of all branches. The tool itself still validates its arguments with the
 * schema as it is.
 */
export function withoutCombination(schema: Fields): Fields {
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const branches = [anyOf, oneOf, allOf].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []));
  if (branches.length === 0) return schema;
  const all = [rest, ...branches];
  // Not `Object.assign`: a property may have the name __proto__.
  const properties = Object.fromEntries(all.flatMap((one) => (isObject(one.properties) ? Object.entries(one.properties) : [])));
  // What only some branches require is left to the tool, which validates its arguments.
  const always = [rest, ...(Array.isArray(allOf) ? allOf.filter(isObject) : [])];
  const required = always.flatMap((one) => (Array.isArray(one.required) ? one.required : []));
  return { ...rest, type: 'object', properties, ...(required.length > 0 ? { required: [...new Set(required)] } : {}) };
}
