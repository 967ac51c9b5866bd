import { hash } from 'node:crypto';
import type { FORMATS } from './compile.js';
import type { JsonSchema } from './schema-types.js';

/** A schema that the build compiled: bundled plugins export one as `compiledOptions`. */
export interface CompiledSchema {
  /** The digest of the schema. The validator is used for no other schema. */
  readonly digest: string;
  /** Creates ajv's validator, which fills in defaults and says whether the options are valid. */
  create(schema: JsonSchema, formats: typeof FORMATS, require: (name: string) => unknown): (options: unknown) => boolean;
}

export function isCompiledSchema(value: unknown): value is CompiledSchema {
  const { digest, create } = (value ?? {}) as Partial<CompiledSchema>;
  return typeof digest === 'string' && typeof create === 'function';
}

export function digestOf(schema: JsonSchema): string {
  return hash('sha256', JSON.stringify(schema));
}
