import { defineExtensionPoint, type Extensions, inject, injectable } from '@plugboard/kernel';
import type { HttpError } from './http-error.js';

/**
 * Makes the body of a refusal. Discipline: the first one in file order is used for every refusal of
 * the server that has no body of its own; without one the body is `{"error":{"message","code"}}`.
 */
export type ErrorFormatter = (error: HttpError) => object;

export const ErrorFormatters = defineExtensionPoint<ErrorFormatter>('transport-http.error-formatters', {
  discipline: 'in-order',
});

/** The plugin's `register` registers its reads under this token. */
export const ERROR_FORMATTERS = Symbol('transport-http.error-formatters');

/** The bodies of refusals, as text. */
@injectable()
export class ErrorBodies {
  readonly #formatters: Extensions<ErrorFormatter>;

  constructor(@inject(ERROR_FORMATTERS) formatters: Extensions<ErrorFormatter>) {
    this.#formatters = formatters;
  }

  of(error: HttpError): string {
    const [first] = this.#formatters.all();
    return JSON.stringify(error.body ?? (first?.value ?? plain)(error));
  }
}

function plain({ message, code }: HttpError): object {
  return { error: { message, code: code ?? null } };
}
