import type { ErrorObject } from 'ajv';
import type { ConfigPath } from '../base/errors.js';
import { nearest, suggestion } from '../base/nearest.js';
import type { JsonSchema } from './schema-types.js';

/** What is wrong with an option, in one sentence. */
export interface OptionFault {
  readonly path: ConfigPath;
  /** Whether it is the key that is wrong, or what stands behind it. */
  readonly at: 'key' | 'value';
  readonly message: string;
}

const FORMATS = {
  duration: 'a duration such as 500ms, 30s, 10m, 24h or 90d',
  size: 'a size such as 64kb or 20mb',
  url: 'a URL such as https://example.com/v1',
  date: 'a date such as 2027-01-31',
} as const;

/**
 * ajv's errors as sentences.
 * @param root the value that was checked.
 * @param hidden pointers to what must not be printed.
 * @param known keys that may stand beside the options, for the suggestion where a key is unknown.
 */
export function sentences(
  errors: readonly ErrorObject[],
  root: unknown,
  hidden: readonly string[],
  known: readonly string[],
): OptionFault[] {
  return relevant(errors).map((error) => fault(error, root, hidden, known));
}

/**
 * Of the errors below an `anyOf` only those of the branch that was meant, where its type tells which: someone who wrote a map meant the
 * map, and wants to hear what is wrong with it. Otherwise the `anyOf` itself, which lists what there is to choose from.
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

function fault(error: ErrorObject, root: unknown, hidden: readonly string[], known: readonly string[]): OptionFault {
  const path = pathOf(error.instancePath, root);
  const params = error.params as Record<string, unknown>;
  const schema = error.parentSchema as JsonSchema;
  if (error.keyword === 'additionalProperties') {
    const key = String(params.additionalProperty);
    const names = [...Object.keys(schema.properties ?? {}), ...(path.length === 0 ? known : [])];
    return { path: [...path, key], at: 'key', message: `unknown option${suggestion(key, names)}` };
  }
  const concealed = hidden.some((at) => `${error.instancePath}/`.startsWith(`${at}/`));
  const but = concealed ? '' : `, not ${shown(error.data)}`;
  const near = !concealed && typeof error.data === 'string' ? nearest(error.data, texts(schema.enum)) : undefined;
  const message = `${sentence(error, params, schema, but)}${near === undefined ? '' : `, did you mean "${near}"?`}`;
  return { path, at: error.keyword === 'required' ? 'key' : 'value', message };
}

/** @param but what was found instead, where it may be shown. */
function sentence({ keyword, data }: ErrorObject, params: Record<string, unknown>, schema: JsonSchema, but: string): string {
  switch (keyword) {
    case 'required':
      return `the option "${params.missingProperty}" is missing`;
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
      return `must not name the same thing twice (${Number(params.j) + 1} and ${Number(params.i) + 1})`;
    case 'pattern':
      return `must look like ${params.pattern}${but}`;
    case 'propertyNames':
      return `"${params.propertyName}" cannot be a name here${schema.propertyNames?.pattern === undefined ? '' : `; a name looks like ${schema.propertyNames.pattern}`}`;
    default:
      return `does not fit its schema (${keyword})`;
  }
}

/** What a schema takes, in words. */
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
  string: () => 'text (in quotes where it looks like a number)',
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

/** ajv's pointer as a path: what indexes a list is a number. */
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
