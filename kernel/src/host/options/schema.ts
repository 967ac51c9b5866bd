import type { ErrorObject } from 'ajv';
import { fault } from '../base/errors.js';
import type { ConfigPath } from '../base/problem.js';
import { compile, FORMATS, requireRuntime } from './compile.js';
import { type CompiledSchema, digestOf } from './compiled-schema.js';
import { KERNEL_SCHEMAS } from './kernel-schemas.js';
import { NO_SUGGESTIONS, type Suggestions } from './option-suggestion.js';
import { isPackageOrPath } from './package-name.js';
import { faultyPart } from './schema-faults.js';
import { type OptionFault, sentences } from './schema-sentences.js';
import type { JsonSchema } from './schema-types.js';
import type { Reference } from './variables.js';

/** Options that were checked with a schema. */
interface CheckedOptions {
  /** With defaults filled in, frozen. Use it only if there are no faults. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly faults: readonly OptionFault[];
  /** The texts that the schema marks `secret`. */
  readonly secrets: readonly string[];
}

/** Checks options with a schema. */
export class OptionSchema {
  /** The schema in which unknown keys are errors, unless an object sets `additionalProperties`. */
  readonly schema: JsonSchema;
  /** Fills in defaults and returns whether options are valid, if the build compiled the schema. */
  readonly #accepts: ((options: unknown) => boolean) | undefined;

  /**
   * @param compiled this schema as the build compiled it. If it is of another schema, it is not
   *   used.
   * @throws Error if the schema is invalid, with the place of the fault in the schema.
   */
  constructor(schema: JsonSchema, compiled?: CompiledSchema) {
    try {
      this.schema = closed(schema);
      this.#accepts = acceptorOf(this.schema, compiled);
      if (this.#accepts === undefined) compile(this.schema);
    } catch (error) {
      const place = faultyPart(schema, (part) => compile(closed(part))).join('.');
      throw new Error(`${place === '' ? '' : `${place}: `}${(error as Error).message}`, { cause: error });
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

  /** The packages and paths of modules that the options name, with their places. */
  packages(options: unknown): { readonly path: ConfigPath; readonly name: string }[] {
    const found: { path: ConfigPath; name: string }[] = [];
    visit(this.schema, options, [], ({ format }, value, path) => {
      if (format === 'package' && typeof value === 'string' && isPackageOrPath(value)) found.push({ path, name: value });
    });
    return found;
  }

  /**
   * Checks a copy of the options.
   * @param references values that come from variables: they can become a number or a boolean, and
   * are never printed.
   */
  check(options: unknown, references: readonly Reference[] = [], suggestions: Suggestions = NO_SUGGESTIONS): CheckedOptions {
    const at = (matches: (reference: Reference) => boolean) =>
      new Set(references.filter(matches).map(({ path }) => pointer(path)));
    const whole = at((reference) => reference.whole);
    const { value, errors } = this.#validate(() => coerced(this.schema, options, whole));
    const secrets = secretsOf(this.schema, value);
    const hidden = [...secrets.map(({ path }) => pointer(path)), ...at(() => true)];
    const unset = at(({ from }) => from === 'unset'); // reported elsewhere
    const isReported = ({ at, path }: OptionFault) => at === 'value' && unset.has(pointer(path));
    const faults = sentences(errors, value, hidden, suggestions).filter((found) => !isReported(found));
    return {
      value: frozen(value) as Readonly<Record<string, unknown>>,
      faults: faults.map((found) => (has(options, found.path) ? found : ofDefault(found))),
      secrets: secrets.flatMap(({ texts }) => texts),
    };
  }

  /** @param copy of the options: a validator fills defaults into it. */
  #validate(copy: () => unknown): { value: unknown; errors: readonly ErrorObject[] } {
    const accepted = copy();
    if (this.#accepts?.(accepted)) return { value: accepted, errors: [] };
    const value = copy();
    const validate = compile(this.schema);
    return { value, errors: validate(value) ? [] : (validate.errors ?? []) };
  }
}

/** Finds the validator that the build made of a schema. */
function acceptorOf(schema: JsonSchema, compiled: CompiledSchema | undefined): ((options: unknown) => boolean) | undefined {
  const digest = digestOf(schema);
  const found = compiled?.digest === digest ? compiled : KERNEL_SCHEMAS.find((own) => own.digest === digest);
  return found?.create(schema, FORMATS, requireRuntime);
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

/** Forbids unknown keys in every object schema that does not set `additionalProperties`. */
export function closed(schema: JsonSchema): JsonSchema {
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
 * wants one and does not accept text. Nothing else is coerced.
 */
function coerced(schema: JsonSchema, value: unknown, whole: ReadonlySet<string>): unknown {
  const wanted = new Map<string, Set<string>>();
  visit(schema, value, [], (part, _, path) => {
    const at = pointer(path);
    if (!whole.has(at)) return;
    const types = wanted.get(at) ?? new Set();
    for (const type of typesOf(part)) types.add(type);
    wanted.set(at, types);
  });
  const copy = (item: unknown, path: ConfigPath): unknown => {
    if (Array.isArray(item)) return item.map((child, index) => copy(child, [...path, index]));
    if (typeof item === 'object' && item !== null) {
      return Object.fromEntries(Object.entries(item).map(([key, child]) => [key, copy(child, [...path, key])]));
    }
    const at = pointer(path);
    if (typeof item !== 'string' || !whole.has(at)) return item;
    const types = wanted.get(at) ?? new Set();
    return types.has('string') ? item : scalar(item, types);
  };
  return copy(value, []);
}

/** The types of a schema, or of the values that it lists. */
function typesOf({ type, enum: values, const: only }: JsonSchema): readonly string[] {
  if (type !== undefined) return [type].flat();
  return [...(values ?? []), ...(only === undefined ? [] : [only])].map((value) => typeof value);
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
