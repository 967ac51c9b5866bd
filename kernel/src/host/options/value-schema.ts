import type { ErrorObject, Options, ValidateFunction } from 'ajv';
import { type ConfigPath, formatPath } from '../base/problem.js';
import { requireRuntime } from './compile.js';
import { LinearPatterns } from './linear-patterns.js';
import { pathOf, predicateOf } from './schema-sentences.js';
import type { JsonSchema } from './schema-types.js';

/** A mistake in a value that a schema does not accept. @experimental */
export interface SchemaMistake {
  /** A clause with its subject: `"items[0].kind" must be "a" or "b", not "c"`. */
  readonly message: string;
  /** The place in the value: `['items', 0, 'kind']`. */
  readonly path: ConfigPath;
  /** The keyword that does not hold, such as `enum`. */
  readonly keyword: string;
  /** What the keyword says about the mistake, as in ajv: `{ limit: 5 }` of `maxLength`. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The key that `propertyNames` refuses. */
  readonly propertyName: string | undefined;
  /** The schema that holds the keyword. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** What the value has at the place. */
  readonly data: unknown;
}

/** How a schema is compiled. @experimental */
export interface ValueSchemaOptions {
  /** Fills in the defaults of absent properties. By default not. */
  readonly useDefaults?: boolean;
  /** Finds all mistakes. By default it stops at the first one. */
  readonly allErrors?: boolean;
  /** Lets `discriminator` select one of the schemas in `oneOf`. By default it means nothing. */
  readonly discriminator?: boolean;
  /**
   * Matches patterns in time proportional to the text, for schemas of strangers. A pattern that
   * cannot be matched so, with look-around or a back reference, makes the schema invalid; or, if
   * this is a function, is passed to it and matches everything. A value that would take too long
   * makes the validator throw. By default patterns are those of JavaScript.
   */
  readonly linearPatterns?: boolean | ((unmatchable: string) => void);
}

/** Returns the mistakes in a value: none if the schema accepts it. @experimental */
export type ValueValidator = (value: unknown) => readonly SchemaMistake[];

const NONE: readonly SchemaMistake[] = Object.freeze([]);

/** Schemas come from many sources: unknown keywords and formats mean nothing. */
const LENIENT: Options = { strict: false, validateFormats: false, logger: false, verbose: true, code: { optimize: false } };

/** The meta-schema is slow to compile, and is needed only by a schema that refers to it. */
const WITHOUT_META_SCHEMA: Options = { meta: false, validateSchema: false };

/**
 * Compiles a JSON Schema for values that come from outside, such as the body of a request. It is
 * read as 2020-12, or as draft 7 if its `$schema` says so.
 *
 * Each schema is compiled in a new instance of ajv: an instance never frees its compiled schemas,
 * and a plugin may compile new ones for months. The first call loads ajv, which takes as long as
 * the start of Node.js: compile a schema that may never be used with its first value.
 *
 * @throws Error if the schema is invalid.
 * @experimental
 */
export function compileSchema(
  { $schema: dialect, ...schema }: Readonly<Record<string, unknown>>,
  { linearPatterns, ...options }: ValueSchemaOptions = {},
): ValueValidator {
  const refersToMetaSchema = JSON.stringify(schema).includes('json-schema.org/');
  const Dialect = dialectOf(dialect);
  const patterns = linearPatterns ? new LinearPatterns(linearPatterns === true ? undefined : linearPatterns) : undefined;
  const engine = patterns && { code: { ...LENIENT.code, regExp: patterns.engine } };
  const ajv = new Dialect({ ...LENIENT, ...(refersToMetaSchema ? {} : WITHOUT_META_SCHEMA), ...options, ...engine });
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => {
    patterns?.reset();
    return validate(value) ? NONE : (validate.errors ?? []).map((error) => mistakeOf(error, value));
  };
}

/** Draft 7 is still common. In it, `items` may be a list. */
function dialectOf(name: unknown): typeof import('ajv').Ajv {
  return typeof name === 'string' && /draft-0[67]\//.test(name)
    ? (requireRuntime('ajv') as typeof import('ajv')).Ajv
    : (requireRuntime('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')).Ajv2020;
}

function mistakeOf(error: ErrorObject, value: unknown): SchemaMistake {
  const { keyword, params, propertyName, data } = error;
  const path = pathOf(error.instancePath, value);
  const schema = (error.parentSchema ?? {}) as JsonSchema & Readonly<Record<string, unknown>>;
  const subject = path.length === 0 ? 'it' : `"${formatPath(path)}"`;
  return { message: `${subject} ${predicateOf(error, schema)}`, path, keyword, params, propertyName, schema, data };
}
