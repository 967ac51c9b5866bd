import { Ajv, type ValidateFunction } from 'ajv';
import { fault, reasonOf } from '../base/errors.js';
import type { ConfigPath } from '../base/problem.js';
import { DURATION_PATTERN } from './duration.js';
import { faultyPart } from './schema-faults.js';
import { type OptionFault, sentences } from './schema-sentences.js';
import type { JsonSchema } from './schema-types.js';
import { SIZE_PATTERN } from './size.js';
import type { Reference } from './variables.js';

/** Options that were checked with a schema. */
interface CheckedOptions {
  /** With defaults filled in, frozen. Use it only if there are no faults. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly faults: readonly OptionFault[];
  /** The texts that the schema marks `secret`. */
  readonly secrets: readonly string[];
}

/**
 * Without the meta-schema: compiling it costs more than all schemas of a usual file, and strict
 * mode also checks schemas.
 */
const ajv = new Ajv({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  allErrors: true,
  useDefaults: true,
  verbose: true,
  meta: false,
  validateSchema: false,
  code: { optimize: false }, // each schema is used a few times: optimising its code takes longer than it saves
});
ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
ajv.addKeyword({ keyword: 'nameOf', schemaType: 'string' });
ajv.addFormat('duration', DURATION_PATTERN);
ajv.addFormat('size', SIZE_PATTERN);
ajv.addFormat('url', (text) => URL.canParse(text));
ajv.addFormat('date', (text) => /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)));

/** Checks options with a schema, which is compiled once, when the plugin is loaded. */
export class OptionSchema {
  /**
   * The schema, with `additionalProperties: false` in every object that does not set it: unknown
   * keys are errors.
   */
  readonly schema: JsonSchema;
  readonly #validate: ValidateFunction;

  /** @throws Error if the schema is invalid, with the place of the fault in the schema. */
  constructor(schema: JsonSchema) {
    try {
      this.schema = closed(schema);
      this.#validate = compiled(this.schema);
    } catch (error) {
      const place = faultyPart(schema, (part) => compiled(closed(part))).join('.');
      throw new Error(`${place === '' ? '' : `${place}: `}${reasonOf(error)}`, { cause: error });
    }
  }

  /** The deprecated options that are set. */
  deprecated(options: unknown): { readonly path: ConfigPath; readonly description: string }[] {
    const found: { path: ConfigPath; description: string }[] = [];
    visit(this.schema, options, [], ({ deprecated, description = '' }, _, path) => {
      if (deprecated === true) found.push({ path, description });
    });
    return found;
  }

  /**
   * Checks a copy of the options.
   * @param references values that come from variables: they can become a number or a boolean, and
   * are never printed.
   * @param known keys that can stand beside the options, for suggestions.
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
    const unset = at(({ from }) => from === 'unset'); // reported elsewhere
    const errors = this.#validate(value)
      ? []
      : (this.#validate.errors ?? []).filter(({ instancePath }) => !unset.has(instancePath));
    return {
      value: frozen(value) as Readonly<Record<string, unknown>>,
      faults: sentences(errors, value, hidden, known).map((found) => (has(options, found.path) ? found : ofDefault(found))),
      secrets: secrets.flatMap(({ texts }) => texts),
    };
  }
}

/** Whether the options have a value at a path, or a key that the schema does not know. */
function has(options: unknown, path: ConfigPath): boolean {
  let value = options;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return false;
    value = (value as Record<string | number, unknown>)[step];
  }
  return true;
}

/** A mistake in what a default filled in: the plugin is at fault, not the file. */
function ofDefault({ path, message }: OptionFault): OptionFault {
  return { path, at: 'key', ...fault('DEFAULT_INVALID', message) };
}

const validators = new Map<string, ValidateFunction>();

/** Compiles each schema once in a process: sections and plugins often have equal ones. */
function compiled(schema: JsonSchema): ValidateFunction {
  const text = JSON.stringify(schema);
  const validate = validators.get(text) ?? ajv.compile(schema);
  validators.set(text, validate);
  return validate;
}

/** Forbids unknown keys in every object schema that does not set `additionalProperties`. */
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

/** Visits each part of a value with every schema that applies to it. */
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

/**
 * Copies a value. Scalars that are wholly one variable become numbers or booleans where the schema
 * does not accept text.
 */
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

/** A path in ajv's notation. */
function pointer(path: ConfigPath): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
