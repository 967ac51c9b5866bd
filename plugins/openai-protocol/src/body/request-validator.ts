import { Ajv, type DefinedError, type SchemaObject, type ValidateFunction } from 'ajv';

/** Checks bodies of requests against a schema. */
export class RequestValidator<T> {
  readonly #validate: ValidateFunction<T>;

  /** Schema validation and code optimisation are off to save start-up time; the tests of each schema check it. */
  constructor(schema: SchemaObject) {
    const ajv = new Ajv({
      discriminator: true,
      allowUnionTypes: true,
      verbose: true,
      meta: false,
      validateSchema: false,
      code: { optimize: false },
    });
    this.#validate = ajv.compile<T>(schema);
  }

  /** Whether a body matches. */
  matches(body: unknown): body is T {
    return this.#validate(body);
  }

  /** The first fault of the last body that did not match. */
  get error(): DefinedError {
    return this.#validate.errors?.[0] as DefinedError;
  }
}
