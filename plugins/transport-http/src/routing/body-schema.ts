import { compileSchema, type ValueValidator } from '@plugboard/kernel/contracts';
import { HttpError } from '../errors/http-error.js';

/** Checks the JSON body of a route. @throws HttpError 400 with the first mistake. */
export type BodySchema = (body: unknown) => void;

/**
 * Compiles the schema of a route's body.
 * @param about names the schema in errors.
 * @throws Error if the schema is invalid.
 */
export function bodySchema(schema: Readonly<Record<string, unknown>>, about: string): BodySchema {
  const validate = compile(schema, about);
  return (body) => {
    const [mistake] = validate(body);
    if (mistake === undefined) return;
    throw new HttpError(400, `The request body is invalid: ${mistake.message}.`, { code: 'invalid_body' });
  };
}

function compile(schema: Readonly<Record<string, unknown>>, about: string): ValueValidator {
  try {
    return compileSchema(schema);
  } catch (error) {
    throw new Error(`${about} is invalid: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}
