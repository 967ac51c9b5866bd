import { HttpError } from '@plugboard/transport-http';
import type { ClaimProblem } from '@plugboard/turn-routes';

/** The types of errors that the protocol has and this server sends. */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'api_error'
  | 'overloaded_error';

export interface MessagesErrorOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** For programs, as `details.error_code`, and for the log. */
  readonly code?: string;
}

/** An error in the words of the protocol. `formatError` makes its body. */
export class MessagesError extends HttpError {
  override readonly name = 'MessagesError';
  readonly type: ErrorType;

  constructor(status: number, type: ErrorType, message: string, { headers, code }: MessagesErrorOptions = {}) {
    super(status, message, { code, headers });
    this.type = type;
  }
}

/** The error for a request with an idempotency key that is neither run nor replayed. */
export function claimError({ status, message, headers = {} }: ClaimProblem): MessagesError {
  if (status === 502) return new MessagesError(500, 'api_error', message, { headers });
  return new MessagesError(status, 'invalid_request_error', message, { headers });
}

/** An invalid request: 400. @param path the field, as in `messages.0.content`. */
export function invalidField(path: string, problem: string): MessagesError {
  return new MessagesError(400, 'invalid_request_error', `${path}: ${problem}`);
}
