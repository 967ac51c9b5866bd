import { createRequire } from 'node:module';
import type { ErrorObject } from 'ajv';
import { HttpError } from '../errors/http-error.js';

const require = createRequire(import.meta.url);

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
    if (validate(body)) return;
    const [mistake] = validate.errors ?? [];
    throw new HttpError(400, `The request body is invalid: ${sentence(mistake)}.`, { code: 'invalid_body' });
  };
}

function compile(schema: Readonly<Record<string, unknown>>, about: string) {
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js'); // few servers have such routes
  try {
    return new Ajv2020({ strict: false, validateFormats: false, logger: false }).compile(schema);
  } catch (error) {
    throw new Error(`${about} is invalid: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

function sentence(error: ErrorObject | undefined): string {
  const { instancePath = '', message = 'does not match', params = {} } = error ?? {};
  const place = instancePath
    .slice(1)
    .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.');
  const about = place === '' ? 'it' : `"${place}"`;
  const { additionalProperty, allowedValues } = params as { additionalProperty?: string; allowedValues?: readonly unknown[] };
  if (additionalProperty !== undefined) return `${about} must not have the property "${additionalProperty.slice(0, 64)}"`;
  return `${about} ${message}${allowedValues ? `: ${allowedValues.join(', ')}` : ''}`;
}
