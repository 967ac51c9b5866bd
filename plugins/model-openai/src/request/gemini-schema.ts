import { isObject, isText } from '../json/json.js';
import { inlineRefs } from './inline-refs.js';
import type { SchemaBudget } from './schema-budget.js';

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that Gemini accepts as they are. Any other one makes it refuse the whole request. */
const KEPT = [
  'title',
  'description',
  'nullable',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'maximum',
];

const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
};

/**
 * Translates a JSON Schema to the part of OpenAPI 3.0 that Gemini accepts: references are replaced
 * by what they refer to, `const`, `oneOf` and lists of types by what means the same, and everything
 * else that it does not know is left out.
 */
export function geminiSchema(root: Schema, budget: SchemaBudget): Schema {
  return translate(root, root, 0, budget);
}

function translate(original: unknown, root: Schema, depth: number, budget: SchemaBudget): Schema {
  if (!isObject(original)) return {};
  const schema = merged(inlineRefs(original, root, depth, budget), root, depth, budget);
  const types = [...new Set(Array.isArray(schema.type) ? schema.type : [schema.type])].filter(isText);
  const plainTypes = types.filter((type) => type !== 'null');
  const branches = listOf(schema.anyOf) ?? listOf(schema.oneOf) ?? [];
  const plainBranches = branches.filter((branch) => branch.type !== 'null');
  const result: Record<string, unknown> = {};
  for (const key of KEPT) if (schema[key] !== undefined) result[key] = schema[key];
  if (types.length > plainTypes.length || branches.length > plainBranches.length) result.nullable = true;

  if (plainBranches.length === 1) return { ...translate(plainBranches[0], root, depth + 1, budget), ...result };
  if (plainBranches.length > 1)
    return { ...result, anyOf: plainBranches.map((branch) => translate(branch, root, depth + 1, budget)) };
  if (plainTypes.length > 1) {
    const anyOf = plainTypes.map((type) => translate({ ...schema, type, description: undefined }, root, depth + 1, budget));
    return { ...result, anyOf };
  }
  return { ...result, ...typed(schema, plainTypes[0] ?? typeOf(schema), root, depth, budget) };
}

/** The keywords that belong to a type. */
function typed(schema: Schema, type: string, root: Schema, depth: number, budget: SchemaBudget): Schema {
  const result: Record<string, unknown> = { type };
  const { format } = schema;
  if (isText(format) && FORMATS[type]?.includes(format)) result.format = format;
  if (type === 'string') {
    // Values of an enumeration must be strings.
    const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const];
    if (values.length > 0 && values.every(isText)) result.enum = values;
  } else if (type === 'array') {
    result.items = isObject(schema.items) ? translate(schema.items, root, depth + 1, budget) : { type: 'string' };
  } else if (type === 'object') {
    const properties = Object.entries(isObject(schema.properties) ? schema.properties : {});
    result.properties = Object.fromEntries(properties.map(([name, value]) => [name, translate(value, root, depth + 1, budget)]));
    const known = new Set(properties.map(([name]) => name));
    const required = Array.isArray(schema.required) ? schema.required.filter((name) => known.has(name)) : [];
    if (required.length > 0) result.required = required;
  } else if (type === 'integer' || type === 'number') {
    const { exclusiveMinimum, exclusiveMaximum } = schema;
    const step = type === 'integer' ? 1 : 0;
    if (typeof exclusiveMinimum === 'number') result.minimum = exclusiveMinimum + step;
    if (typeof exclusiveMaximum === 'number') result.maximum = exclusiveMaximum - step;
  }
  return result;
}

/** Merges the schemas of `allOf` into one. */
function merged(schema: Schema, root: Schema, depth: number, budget: SchemaBudget): Schema {
  const parts = listOf(schema.allOf);
  if (parts === undefined || depth > 12) return schema;
  const { allOf, ...own } = schema;
  const result = new Map<string, unknown>();
  const properties = new Map<string, unknown>();
  const required = new Set<unknown>();
  for (const part of [...parts.map((one) => merged(inlineRefs(one, root, depth, budget), root, depth + 1, budget)), own]) {
    for (const [key, value] of Object.entries(part)) result.set(key, value);
    for (const [name, value] of Object.entries(asObject(part.properties))) properties.set(name, value);
    for (const name of asList(part.required)) required.add(name);
  }
  if (properties.size > 0) result.set('properties', Object.fromEntries(properties));
  if (required.size > 0) result.set('required', [...required]);
  return Object.fromEntries(result);
}

/** The type of a schema that does not say one. */
function typeOf(schema: Schema): string {
  if (isObject(schema.properties)) return 'object';
  if (schema.items !== undefined) return 'array';
  const sample: unknown = Array.isArray(schema.enum) ? schema.enum[0] : schema.const;
  if (typeof sample === 'number') return Number.isInteger(sample) ? 'integer' : 'number';
  return typeof sample === 'boolean' ? 'boolean' : 'string';
}

function listOf(value: unknown): readonly Schema[] | undefined {
  return Array.isArray(value) ? value.filter(isObject) : undefined;
}

function asObject(value: unknown): Schema {
  return isObject(value) ? value : {};
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
