import { createRequire } from 'node:module';
import type { Ajv, Options, ValidateFunction } from 'ajv';
import equal from 'ajv/dist/runtime/equal.js';
import ucs2length from 'ajv/dist/runtime/ucs2length.js';
import { parseDate } from './date.js';
import { DURATION_PATTERN } from './duration.js';
import { isPackageOrPath } from './package-name.js';
import type { JsonSchema } from './schema-types.js';
import { SIZE_PATTERN } from './size.js';

/** Functions, because ajv copies regular expressions into the code that the build generates. */
export const FORMATS = {
  duration: (text: string) => DURATION_PATTERN.test(text),
  size: (text: string) => SIZE_PATTERN.test(text),
  url: (text: string) => URL.canParse(text),
  date: (text: string) => parseDate(text) !== undefined,
  package: (text: string) => isPackageOrPath(text),
} as const;

/** Loads a module only when it is needed: ajv takes as long to load as Node.js. */
const requireLater = createRequire(import.meta.url);

/** The small parts of ajv that compiled schemas use, without loading the package. */
const RUNTIME = new Map<string, unknown>([
  ['ajv/dist/runtime/equal', equal],
  ['ajv/dist/runtime/ucs2length', ucs2length],
]);

/** `require` for compiled schemas. */
export function requireRuntime(name: string): unknown {
  return RUNTIME.get(name) ?? requireLater(name);
}

/** Creates ajv without the meta-schema: compiling that costs more than all schemas of a file. */
export function createAjv(options: Options): Ajv {
  const { Ajv } = requireLater('ajv') as typeof import('ajv');
  const ajv = new Ajv({
    strict: true,
    strictRequired: false,
    allowUnionTypes: true,
    useDefaults: true,
    meta: false,
    validateSchema: false,
    ...options,
  });
  ajv.addKeyword({ keyword: 'secret', schemaType: 'boolean' });
  ajv.addKeyword({ keyword: 'nameOf', schemaType: 'string' });
  for (const [name, format] of Object.entries(FORMATS)) ajv.addFormat(name, format);
  return ajv;
}

let ajv: Ajv | undefined;
const validators = new Map<string, ValidateFunction>();

/**
 * Compiles a schema to a validator that finds all errors. Each schema is compiled once in a
 * process: sections and plugins often have equal ones.
 *
 * @throws Error if the schema is invalid.
 */
export function compile(schema: JsonSchema): ValidateFunction {
  // Each schema is used a few times: optimising its code takes longer than it saves.
  ajv ??= createAjv({ allErrors: true, verbose: true, code: { optimize: false } });
  const text = JSON.stringify(schema);
  const validate = validators.get(text) ?? ajv.compile(schema);
  validators.set(text, validate);
  return validate;
}
