import { Ajv, type ValidateFunction } from 'ajv';
import type { ConfigPath } from '../base/errors.js';
import { DURATION_PATTERN } from './duration.js';
import { type OptionFault, sentences } from './schema-sentences.js';
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

/** Without its meta-schema, whose compilation would cost more than all of a usual file's: strict mode finds the faults of a schema too. */
const ajv = new Ajv({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
  allErrors: true,
  useDefaults: true,
  verbose: true,
  meta: false,
  validateSchema: false,
});
ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
ajv.addFormat('duration', DURATION_PATTERN);
ajv.addFormat('size', SIZE_PATTERN);
ajv.addFormat('url', (text) => URL.canParse(text));
ajv.addFormat('date', (text) => /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)));

/** The options that a schema describes. It is compiled once, when the plugin is loaded. */
export class OptionSchema {
  /** The schema with every object closed that does not say otherwise: unknown keys are errors. */
  readonly schema: JsonSchema;
  readonly #validate: ValidateFunction;

  /** @throws Error where ajv, in its strict mode, finds fault with the schema. */
  constructor(schema: JsonSchema) {
    this.schema = closed(schema);
    this.#validate = compiled(this.schema);
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
    const errors = this.#validate(value)
      ? []
      : (this.#validate.errors ?? []).filter(({ instancePath }) => !unset.has(instancePath));
    return {
      value: frozen(value) as Readonly<Record<string, unknown>>,
      faults: sentences(errors, value, hidden, known),
      secrets: secrets.flatMap(({ texts }) => texts),
    };
  }
}

const validators = new Map<string, ValidateFunction>();

/** Sections and plugins often have the same options as others: each schema is compiled once in a process. */
function compiled(schema: JsonSchema): ValidateFunction {
  const text = JSON.stringify(schema);
  const validate = validators.get(text) ?? ajv.compile(schema);
  validators.set(text, validate);
  return validate;
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
