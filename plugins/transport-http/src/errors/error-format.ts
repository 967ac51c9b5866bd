import type { HttpError } from './http-error.js';

/** An error as the protocol of a route has it. */
export interface ErrorReply {
  /** By default the status of the error. */
  readonly status?: number;
  /** Added to the headers of the error. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body: object;
}

/** Formats an error response. @param requestId also sent as `x-request-id`. */
export type ErrorFormatter = (error: HttpError, requestId: string) => ErrorReply;

/** The format without a formatter: `{"error":{"message","code"}}`. */
export function plainError({ message, code }: HttpError): ErrorReply {
  return { body: { error: { message, code: code ?? null } } };
}
