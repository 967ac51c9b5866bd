import type { ErrorObject } from 'ajv';
import { type Fault, fault } from '../base/errors.js';
import { nearest } from '../base/nearest.js';
import type { ConfigPath } from '../base/problem.js';
import { optionSuggestion, type Suggestions } from './option-suggestion.js';
import type { JsonSchema } from './schema-types.js';

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
} as const;

/**
 * Converts ajv's errors to sentences.
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
  const but = concealed ? '' : `${asList(error, schema)}, not ${shown(error.data)}`;
  const near = !concealed && typeof error.data === 'string' ? nearest(error.data, texts(schema.enum)) : undefined;
  const message = `${sentence(error, params, schema, but)}${near === undefined ? '' : `, did you mean "${near}"?`}`;
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

/** @param but `, not X`, if the value can be printed. */
function sentence({ keyword, data }: ErrorObject, params: Record<string, unknown>, schema: JsonSchema, but: string): string {
  switch (keyword) {
    case 'type':
    case 'format':
    case 'enum':
    case 'const':
      return `must be ${described(schema)}${but}`;
    case 'anyOf':
    case 'oneOf': {
      const several = Array.isArray(params.passingSchemas);
      return `must be ${several ? 'only one of ' : ''}${described(schema)}${typeof data === 'object' ? '' : but}`;
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
      return `does not match its schema (${keyword})`;
  }
}

function nameRule({ propertyNames }: JsonSchema): string {
  return propertyNames?.pattern === undefined ? '' : `; a name matches ${propertyNames.pattern}`;
}

/** Describes the values that a schema accepts. */
function described(schema: JsonSchema): string {
  if (schema.const !== undefined) return shown(schema.const);
  if (schema.enum !== undefined) return anyOf(schema.enum.map(shown));
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) return anyOf([...new Set(branches.map(described))]);
  if (schema.format !== undefined) return FORMATS[schema.format];
  if (schema.type === undefined && schema.required !== undefined) return `a map with ${schema.required.map(shown).join(', ')}`;
  return anyOf([schema.type ?? []].flat().map((type) => TYPES[type](schema)));
}

const TYPES = {
  string: () => 'text (quoted if it looks like a number)',
  number: () => 'a number',
  integer: () => 'a whole number',
  boolean: () => 'true or false',
  null: () => 'nothing',
  array: () => 'a list',
  object: ({ properties = {} }: JsonSchema) => {
    const keys = Object.keys(properties);
    return keys.length > 0 && keys.length <= 4 ? `a map { ${keys.join(', ')} }` : 'a map';
  },
} as const;

function anyOf(words: readonly string[]): string {
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` : (words[0] ?? 'something else');
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

function texts(values: readonly unknown[] = []): string[] {
  return values.filter((value) => typeof value === 'string');
}

/** Converts ajv's pointer to a path: indexes of lists are numbers. */
function pathOf(instancePath: string, root: unknown): ConfigPath {
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
