import { defineExtensionPoint, type Extensions, type PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpError } from './http-error.js';

/**
 * Formats the body of an error response. Discipline: the first one in file order formats every
 * `HttpError` without its own body; without a formatter the body is `{"error":{"message","code"}}`.
 */
export type ErrorFormatter = (error: HttpError) => object;

export const ErrorFormatters = defineExtensionPoint<ErrorFormatter>('transport-http.error-formatters', {
  discipline: 'in-order',
});

/** Formats error responses. */
export class ErrorBodies {
  readonly #formatters: Extensions<ErrorFormatter>;

  constructor(@inject(CONTEXT) { extensions }: PluginContext) {
    this.#formatters = extensions(ErrorFormatters);
  }

  /** The body of an error response, as JSON text. */
  format(error: HttpError): string {
    const [first] = this.#formatters.all();
    return JSON.stringify(error.body ?? (first?.value ?? plain)(error));
  }
}

function plain({ message, code }: HttpError): object {
  return { error: { message, code: code ?? null } };
}
