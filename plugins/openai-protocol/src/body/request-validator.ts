import { createRequire } from 'node:module';
import type { DefinedError, SchemaObject, ValidateFunction } from 'ajv';

const require = createRequire(import.meta.url);

/** Checks bodies of requests against a schema. */
export class RequestValidator<T> {
  readonly #schema: SchemaObject;
  #compiled: ValidateFunction<T> | undefined;

  /**
   * The first body loads ajv and compiles the schema: at the start that would take longer than
   * anything else.
   */
  constructor(schema: SchemaObject) {
    this.#schema = schema;
  }

  /** Whether a body matches. */
  matches(body: unknown): body is T {
    this.#compiled ??= compile<T>(this.#schema);
    return this.#compiled(body);
  }

  /** The first fault of the last body that did not match. */
  get error(): DefinedError {
    return this.#compiled?.errors?.[0] as DefinedError;
  }
}

/**
 * Without validation of the schema, which its tests check, and without optimised code, which takes
 * longer than it saves.
 */
function compile<T>(schema: SchemaObject): ValidateFunction<T> {
  const { Ajv } = require('ajv') as typeof import('ajv');
  const ajv = new Ajv({
    discriminator: true,
    allowUnionTypes: true,
    verbose: true,
    meta: false,
    validateSchema: false,
    code: { optimize: false },
  });
  return ajv.compile<T>(schema);
}
