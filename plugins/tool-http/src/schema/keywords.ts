import { type Fields, listOf, textOf } from '../document/fields.js';

/** A schema for the model: plain JSON Schema, without `$ref`, `allOf` and keywords of OpenAPI. */
export type Schema = Readonly<Record<string, unknown>>;

/** Characters of a description (OAS-6). */
const MAX_DESCRIPTION = 1_024;
/** Characters of a default that a description names. */
const MAX_DEFAULT = 100;
/** Characters of a pattern. */
const MAX_PATTERN = 1_000;

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'] as const;
const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'] as const;

/**
 * The keywords of a schema that hold no other schema, without malformed ones: the server of the
 * API has the last word, so what is left out only accepts more.
 */
export function keywordsOf(schema: Fields): Schema {
  const found: Record<string, unknown> = {};
  const type = typeOf(schema);
  if (type !== undefined) found.type = type;
  const description = describe(schema.description, schema.default);
  if (description !== undefined) found.description = description;
  const choices = listOf(schema.enum);
  if (choices.length > 0) found.enum = choices;
  if (schema.const !== undefined) found.const = schema.const;
  if (textOf(schema.format) !== undefined) found.format = schema.format;
  for (const keyword of NUMBERS) if (Number.isFinite(schema[keyword])) found[keyword] = schema[keyword];
  for (const keyword of COUNTS) if (isCount(schema[keyword])) found[keyword] = schema[keyword];
  if (typeof found.multipleOf === 'number' && found.multipleOf <= 0) delete found.multipleOf;
  if (schema.uniqueItems === true) found.uniqueItems = true;
  if (isPattern(schema.pattern)) found.pattern = schema.pattern;
  return exclusive(found, schema);
}

/** A description, cut, with the default, which is not sent by itself (OAS-11). */
export function describe(description: unknown, preset?: unknown): string | undefined {
  const text = textOf(description)?.trim().toWellFormed();
  const value = jsonOf(preset);
  const suffix = value === undefined || value.length > MAX_DEFAULT ? '' : `Default: ${value}.`;
  if (text === undefined) return suffix === '' ? undefined : suffix;
  const room = suffix === '' ? MAX_DESCRIPTION : MAX_DESCRIPTION - suffix.length - 1;
  const kept = text.length <= room ? text : `${text.slice(0, room - 1)}…`.toWellFormed();
  return suffix === '' ? kept : `${kept} ${suffix}`;
}

/** Undefined for a value that JSON cannot express: YAML may have circles. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The schema, which accepts null besides. */
export function nullable(schema: Schema): Schema {
  const { type, enum: choices, const: constant, anyOf } = schema;
  const found: Record<string, unknown> = { ...schema };
  if (type !== undefined) found.type = [...new Set([type, 'null'].flat())];
  if (Array.isArray(choices) && !choices.includes(null)) found.enum = [...choices, null];
  if (constant !== undefined && constant !== null) {
    delete found.const;
    found.enum = [constant, null];
  }
  if (Array.isArray(anyOf)) found.anyOf = [...anyOf, { type: 'null' }];
  return found;
}

/** The type or types of a schema, also where only other keywords say it. */
function typeOf({ type, properties, additionalProperties, items }: Fields): string | readonly string[] | undefined {
  const types = [type].flat().filter((one): one is string => TYPES.has(one));
  if (types.length > 0) return types.length === 1 ? types[0] : [...new Set(types)];
  if (properties !== undefined || additionalProperties !== undefined) return 'object';
  return items === undefined ? undefined : 'array';
}

/** In 3.0, `exclusiveMinimum: true` is about `minimum`. */
function exclusive(found: Record<string, unknown>, schema: Fields): Schema {
  for (const [bound, keyword] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (schema[keyword] !== true || found[bound] === undefined) continue;
    found[keyword] = found[bound];
    delete found[bound];
  }
  return found;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isPattern(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > MAX_PATTERN) return false;
  try {
    new RegExp(value, 'u');
    return true;
  } catch {
    return false;
  }
}
