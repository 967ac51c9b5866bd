import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { DURATION_PATTERN } from './duration.js';
import type { ConfigPath } from './errors.js';
import { suggestion } from './nearest.js';
import type { JsonSchema } from './schema-types.js';
import { SIZE_PATTERN } from './size.js';
import type { Reference } from './variables.js';

/** Options after they were checked against a schema. */
export interface CheckedOptions {
  /** With defaults filled in, frozen. To be used only where there are no faults. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly faults: readonly OptionFault[];
  /** What the schema marks `secret`. */
  readonly secrets: readonly string[];
}

export interface OptionFault {
  readonly path: ConfigPath;
  /** Whether it is the key that is wrong, or what stands behind it. */
  readonly at: 'key' | 'value';
  readonly message: string;
}

const ajv = new Ajv({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  allErrors: true,
  useDefaults: true,
  verbose: true,
});
ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
ajv.addFormat('duration', DURATION_PATTERN);
ajv.addFormat('size', SIZE_PATTERN);
ajv.addFormat('url', (text) => URL.canParse(text));
ajv.addFormat('date', (text) => /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)));

const FORMATS = {
  duration: 'a duration such as 500ms, 30s, 10m, 24h or 90d',
  size: 'a size such as 64kb or 20mb',
  url: 'a URL such as https://example.com/v1',
  date: 'a date such as 2027-01-31',
} as const;

/** The options that a schema describes. It is compiled once, when the plugin is loaded. */
export class OptionSchema {
  /** The schema with every object closed that does not say otherwise: unknown keys are errors. */
  readonly schema: JsonSchema;
  readonly #validate: ValidateFunction;

  /** @throws Error where ajv, in its strict mode, finds fault with the schema. */
  constructor(schema: JsonSchema) {
    this.schema = closed(schema);
    this.#validate = ajv.compile(this.schema);
  }

  /**
   * Checks a copy of the options.
   * @param known keys that may stand beside the options, for the suggestion where a key is unknown.
   * @param references what came from variables: it may become a number or a boolean, and is never printed.
   */
  check(options: unknown, references: readonly Reference[] = [], known: readonly string[] = []): CheckedOptions {
    const at = (matches: (reference: Reference) => boolean) =>
      new Set(references.filter(matches).map(({ path }) => pointer(path)));
    const value = coerced(
      this.schema,
      options,
      at(({ whole }) => whole),
    );
    const secrets = secretsOf(this.schema, value);
    const hidden = [...secrets.map(({ path }) => pointer(path)), ...at(() => true)];
    const unset = at(({ from }) => from === 'unset'); // told of elsewhere
    const errors = this.#validate(value) ? [] : relevant(this.#validate.errors ?? []);
    return {
      value: frozen(value) as Readonly<Record<string, unknown>>,
      faults: errors.filter(({ instancePath }) => !unset.has(instancePath)).map((error) => fault(error, value, hidden, known)),
      secrets: secrets.flatMap(({ texts }) => texts),
    };
  }
}

/** Closes every object schema that does not say what else it may hold. */
function closed(schema: JsonSchema): JsonSchema {
  const copy: { -readonly [K in keyof JsonSchema]: JsonSchema[K] } = { ...schema };
  if (schema.properties !== undefined) {
    copy.properties = Object.fromEntries(Object.entries(schema.properties).map(([key, property]) => [key, closed(property)]));
    if (schema.type === 'object') copy.additionalProperties = schema.additionalProperties ?? false;
  }
  if (typeof schema.additionalProperties === 'object') copy.additionalProperties = closed(schema.additionalProperties);
  if (schema.items !== undefined) copy.items = closed(schema.items);
  if (schema.anyOf !== undefined) copy.anyOf = schema.anyOf.map(closed);
  if (schema.oneOf !== undefined) copy.oneOf = schema.oneOf.map(closed);
  return copy;
}

type Visitor = (schema: JsonSchema, value: unknown, path: ConfigPath) => void;

/** Calls back with each part of a value and every schema that has to do with it. */
function visit(schema: JsonSchema, value: unknown, path: ConfigPath, visitor: Visitor): void {
  visitor(schema, value, path);
  for (const branch of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) visit(branch, value, path, visitor);
  if (Array.isArray(value)) {
    if (schema.items !== undefined)
      for (const [index, item] of value.entries()) visit(schema.items, item, [...path, index], visitor);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const property = schema.properties?.[key] ?? schema.additionalProperties;
      if (typeof property === 'object') visit(property, item, [...path, key], visitor);
    }
  }
}

/** A copy in which the scalars that are wholly one variable are numbers or booleans where the schema takes no text. */
function coerced(schema: JsonSchema, value: unknown, whole: ReadonlySet<string>): unknown {
  const wanted = new Map<string, Set<string>>();
  visit(schema, value, [], (part, _, path) => {
    const at = pointer(path);
    if (!whole.has(at)) return;
    const types = wanted.get(at) ?? new Set();
    for (const type of [part.type ?? []].flat()) types.add(type);
    wanted.set(at, types);
  });
  const copy = (item: unknown, path: ConfigPath): unknown => {
    if (Array.isArray(item)) return item.map((child, index) => copy(child, [...path, index]));
    if (typeof item === 'object' && item !== null) {
      return Object.fromEntries(Object.entries(item).map(([key, child]) => [key, copy(child, [...path, key])]));
    }
    const types = wanted.get(pointer(path));
    return typeof item !== 'string' || types === undefined || types.has('string') ? item : scalar(item, types);
  };
  return copy(value, []);
}

function scalar(text: string, types: ReadonlySet<string>): unknown {
  if ((types.has('number') || types.has('integer')) && /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text)) return Number(text);
  if (types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

function secretsOf(schema: JsonSchema, value: unknown): { path: ConfigPath; texts: string[] }[] {
  const found: { path: ConfigPath; texts: string[] }[] = [];
  visit(schema, value, [], (part, item, path) => {
    if (part.secret === true) found.push({ path, texts: textsIn(item) });
  });
  return found;
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

/** A path as ajv writes it. */
function pointer(path: ConfigPath): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
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
  return {
    path,
    at: error.keyword === 'required' ? 'key' : 'value',
    message: sentence(error.keyword, params, schema, but, concealed ? undefined : error),
  };
}

function sentence(
  keyword: string,
  params: Record<string, unknown>,
  schema: JsonSchema,
  but: string,
  error: ErrorObject | undefined,
): string {
  switch (keyword) {
    case 'required':
      return `the option "${params.missingProperty}" is missing`;
    case 'type':
    case 'format':
      return `must be ${described(schema)}${but}`;
    case 'enum':
    case 'const':
    case 'anyOf':
    case 'oneOf': {
      const choice = schema.enum?.filter((value) => typeof value === 'string') ?? [];
      const hint = typeof error?.data === 'string' && choice.length > 3 ? suggestion(error.data, choice) : '';
      return `must be ${described(schema)}${but}${hint.startsWith(', did') ? hint : ''}`;
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
