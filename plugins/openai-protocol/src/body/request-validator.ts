import { compileSchema, type SchemaMistake, type ValueValidator } from '@plugboard/kernel/contracts';
import type { ProtocolError } from '../errors/errors.js';
import { schemaErrorToProtocol } from '../errors/schema-error.js';
import type { RequestSchema } from './schema-parts.js';

/** Checks bodies of requests against a schema. */
export class RequestValidator<T> {
  readonly #schema: RequestSchema;
  #validate: ValueValidator | undefined;

  /** The schema is compiled with the first body: at the start that would take too long. */
  constructor(schema: RequestSchema) {
    this.#schema = schema;
  }

  /**
   * Returns a body that matches.
   *
   * @param errorOf converts the first mistake.
   * @throws ProtocolError for the first mistake.
   */
  check(body: object, errorOf: (mistake: SchemaMistake) => ProtocolError = schemaErrorToProtocol): T {
    this.#validate ??= compileSchema(this.#schema, { discriminator: true });
    const [mistake] = this.#validate(body);
    if (mistake !== undefined) throw errorOf(mistake);
    return body as T;
  }
}
