import type { HttpError } from './http-error.js';

/** Formats the body of an error response. */
export type ErrorFormatter = (error: HttpError) => object;

/** The format without a formatter: `{"error":{"message","code"}}`. */
export function plainError({ message, code }: HttpError): object {
  return { error: { message, code: code ?? null } };
}
