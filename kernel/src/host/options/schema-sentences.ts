import type { ErrorObject } from 'ajv';
import { type Fault, fault } from '../base/errors.js';
import { nearest } from '../base/nearest.js';
import type { ConfigPath } from '../base/problem.js';
import { optionSuggestion, type Suggestions } from './option-suggestion.js';
import type { JsonSchema, SchemaType } from './schema-types.js';

/** A mistake in an option, in one sentence. */
export interface OptionFault extends Fault {
  readonly path: ConfigPath;
  /** Whether the key is wrong or its value. */
  readonly at: 'key' | 'value';
}

const FORMATS = {
  duration: 'a duration such as 500ms, 30s, 10m, 24h or 90d',
  size: 'a size such as 64kb or 20mb',
  url: 'a URL such as https://example.com/v1',
  date: 'a date such as 2027-01-31',
  package: 'the name of a package such as @acme/greeter, or a path that is absolute or starts with ./ or ../',
} as const;

/** Values of an `enum` that a sentence lists. */
const MAX_CHOICES = 30;

/** What a writer calls the types: options are written in YAML, other values in JSON. */
interface Vocabulary {
  readonly types: Readonly<Record<SchemaType, string>>;
  readonly formats: Readonly<Record<string, string>>;
  /** The clause about a mistake that there are no better words for. */
  other(error: ErrorObject): string;
}

const YAML: Vocabulary = {
  types: {
    string: 'text (quoted if it looks like a number)',
    number: 'a number',
    integer: 'a whole number',
    boolean: 'true or false',
    null: 'nothing',
    array: 'a list',
    object: 'a map',
  },
  formats: FORMATS,
  other: ({ keyword }) => `does not match its schema (${keyword})`,
};

const JSON_WORDS: Vocabulary = {
  types: {
    string: 'a string',
    number: 'a number',
    integer: 'an integer',
    boolean: 'a boolean',
    null: 'null',
    array: 'an array',
    object: 'an object',
  },
  formats: {},
  other: ({ keyword, message }) => message ?? `does not match its schema (${keyword})`,
};

/**
 * Converts ajv's errors about options to sentences.
 * @param root the value that was checked.
 * @param hidden pointers to values that must not be printed.
 */
export function sentences(
  errors: readonly ErrorObject[],
  root: unknown,
  hidden: readonly string[],
  suggestions: Suggestions,
): OptionFault[] {
  return relevant(errors).map((error) => optionFault(error, root, hidden, suggestions));
}

/**
 * Selects the errors to report. Below an `anyOf` these are the errors of the branch whose type
 * matches the value: the author of a map meant the branch for maps. If no branch or several match,
 * it is the `anyOf` itself, whose message lists the choices.
 */
function relevant(errors: readonly ErrorObject[]): ErrorObject[] {
  const union = errors
    .filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')
    .sort((a, b) => a.schemaPath.length - b.schemaPath.length)[0];
  if (union === undefined) return errors.filter((error) => error.propertyName === undefined);
  const below = (error: ErrorObject) =>
    error.schemaPath.startsWith(`${union.schemaPath}/`) && `${error.instancePath}/`.startsWith(`${union.instancePath}/`);
  const branches = Object.values(
    Object.groupBy(errors.filter(below), (error) => error.schemaPath.slice(union.schemaPath.length + 1).split('/')[0] ?? ''),
  ) as ErrorObject[][];
  const meant = branches.filter(
    (branch) => !branch.some((error) => error.keyword === 'type' && error.instancePath === union.instancePath),
  );
  const here = meant.length === 1 && meant[0] !== undefined ? relevant(meant[0]) : [union];
  return [...here, ...relevant(errors.filter((error) => error !== union && !below(error)))];
}

function optionFault(error: ErrorObject, root: unknown, hidden: readonly string[], { keys, synonyms }: Suggestions): OptionFault {
  const path = pathOf(error.instancePath, root);
  const params = error.params as Record<string, unknown>;
  const schema = error.parentSchema as JsonSchema;
  if (error.keyword === 'additionalProperties') {
    const key = String(params.additionalProperty);
    const ending = optionSuggestion(key, schema, { keys: path.length === 0 ? keys : [], synonyms });
    return { path: [...path, key], at: 'key', ...fault('OPTION_UNKNOWN', ending) };
  }
  if (error.keyword === 'required') return { path, at: 'key', ...fault('OPTION_MISSING', String(params.missingProperty)) };
  const concealed = hidden.some((at) => `${error.instancePath}/`.startsWith(`${at}/`));
  const but = concealed ? '' : `${asList(error, schema)}, not ${shown(error.data, YAML)}`;
  const near = !concealed && typeof error.data === 'string' ? nearest(error.data, texts(schema.enum)) : undefined;
  const message = `${predicate(error, params, schema, but, YAML)}${near === undefined ? '' : `, did you mean "${near}"?`}`;
  return { path, at: 'value', ...fault('OPTION_INVALID', message) };
}

/** `, such as [clock]` for a text or number where a list must be. */
function asList({ keyword, data }: ErrorObject, { type, items }: JsonSchema): string {
  if (keyword !== 'type' || type !== 'array' || (typeof data !== 'string' && typeof data !== 'number')) return '';
  if (items?.type !== 'string' && items?.type !== 'number' && items?.type !== 'integer') return '';
  const words = String(data)
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const list = words.map((word) => (/^\w[\w./-]*$/.test(word) ? word : JSON.stringify(word))).join(', ');
  return words.length === 0 || list.length > 60 ? '' : `, such as [${list}]`;
}

/** Says what is wrong with a value of JSON, as a clause without its subject. */
export function predicateOf(error: ErrorObject, schema: JsonSchema): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const key = params.additionalProperty ?? params.unevaluatedProperty;
      return `must not have the property ${shown(key, JSON_WORDS)}`;
    }
    case 'required':
      return `must have the property ${shown(params.missingProperty, JSON_WORDS)}`;
    default:
      return predicate(error, params, schema, `, not ${shown(error.data, JSON_WORDS)}`, JSON_WORDS);
  }
}

/** @param but `, not X`, if the value can be printed. */
function predicate(
  error: ErrorObject,
  params: Record<string, unknown>,
  schema: JsonSchema,
  but: string,
  words: Vocabulary,
): string {
  const accepted = described(schema, words);
  switch (error.keyword) {
    case 'type':
    case 'format':
    case 'enum':
    case 'const':
      return accepted === undefined ? words.other(error) : `must be ${accepted}${but}`;
    case 'anyOf':
    case 'oneOf': {
      const several = Array.isArray(params.passingSchemas);
      if (accepted === undefined) return words.other(error);
      return `must be ${several ? 'only one of ' : ''}${accepted}${typeof error.data === 'object' ? '' : but}`;
    }
    case 'minimum':
      return `must be at least ${params.limit}${but}`;
    case 'exclusiveMinimum':
      return `must be more than ${params.limit}${but}`;
    case 'maximum':
      return `must be at most ${params.limit}${but}`;
    case 'minLength':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} characters`;
    case 'maxLength':
      return `must have at most ${params.limit} characters`;
    case 'minItems':
    case 'minProperties':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} entries`;
    case 'maxItems':
    case 'maxProperties':
      return `must have at most ${params.limit} entries`;
    case 'uniqueItems':
      return `must not contain duplicates (items ${Number(params.j) + 1} and ${Number(params.i) + 1})`;
    case 'pattern':
      return `must match ${params.pattern}${but}`;
    case 'propertyNames':
      return `"${params.propertyName}" is not a valid name here${nameRule(schema)}`;
    default:
      return words.other(error);
  }
}

function nameRule({ propertyNames }: JsonSchema): string {
  return propertyNames?.pattern === undefined ? '' : `; a name matches ${propertyNames.pattern}`;
}

/** Describes the values that a schema accepts. Undefined if it says so elsewhere, as by `$ref`. */
function described(schema: JsonSchema, words: Vocabulary): string | undefined {
  if (schema.const !== undefined) return shown(schema.const, words);
  if (schema.enum !== undefined) return choicesOf(schema.enum, words);
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) {
    const choices = branches.map((branch) => described(branch, words));
    return choices.every((choice) => choice !== undefined) ? anyOf([...new Set(choices)]) : undefined;
  }
  const format = words.formats[schema.format ?? ''];
  if (format !== undefined) return format;
  if (schema.type === undefined && schema.required !== undefined) {
    return `${words.types.object} with ${schema.required.map((key) => shown(key, words)).join(', ')}`;
  }
  if (schema.type === undefined) return undefined;
  return anyOf([schema.type].flat().map((type) => `${words.types[type]}${type === 'object' ? keysOf(schema) : ''}`));
}

function choicesOf(values: readonly unknown[], words: Vocabulary): string {
  const choices = values.slice(0, MAX_CHOICES).map((value) => shown(value, words));
  return anyOf(values.length > MAX_CHOICES ? [...choices, `another of ${values.length}`] : choices);
}

/** ` { a, b }` for an object with few properties. */
function keysOf({ properties = {} }: JsonSchema): string {
  const keys = Object.keys(properties);
  return keys.length > 0 && keys.length <= 4 ? ` { ${keys.join(', ')} }` : '';
}

function anyOf(words: readonly string[]): string {
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` : (words[0] ?? '');
}

function shown(value: unknown, { types }: Vocabulary): string {
  if (value === null || value === undefined) return types.null;
  if (Array.isArray(value)) return types.array;
  if (typeof value === 'object') return types.object;
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function texts(values: readonly unknown[] = []): string[] {
  return values.filter((value) => typeof value === 'string');
}

/** Converts ajv's pointer to a path: indexes of lists are numbers. */
export function pathOf(instancePath: string, root: unknown): ConfigPath {
  let value = root;
  return instancePath
    .split('/')
    .slice(1)
    .map((step) => {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
      const at = Array.isArray(value) ? Number(key) : key;
      value = (value as Record<string | number, unknown>)[at];
      return at;
    });
}
