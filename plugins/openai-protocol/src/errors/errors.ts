import { HttpError } from '@plugboard/transport-http';

/**
 * The error object of the protocol. `svc_error` has a message and a type only; every other type has
 * all four keys, null if there is nothing to say.
 */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param?: string | null;
    readonly code?: string | null;
  };
}

/** An `HttpError` with the error object of the protocol. */
export class ProtocolError extends HttpError {
  override readonly name = 'ProtocolError';
  declare readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody, headers: Readonly<Record<string, string>> = {}) {
    super(status, body.error.message, { code: body.error.code ?? undefined, headers, body });
  }
}

/** An invalid request: `invalid_request_error`, status 400 by default. */
export function invalidRequest(
  message: string,
  {
    status = 400,
    param = null,
    code = null,
    headers = {},
  }: {
    status?: number;
    param?: string | null;
    code?: string | null | undefined;
    headers?: Readonly<Record<string, string>> | undefined;
  } = {},
): ProtocolError {
  return new ProtocolError(status, { error: { message, type: 'invalid_request_error', param, code } }, headers);
}

/** An `svc_error`: nothing resolves (400), out of scope (403), the turn failed (502). */
export function serviceError(
  status: 400 | 403 | 502,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): ProtocolError {
  return new ProtocolError(status, { error: { message, type: 'svc_error' } }, headers);
}

/** The server cannot accept the request now. */
export function unavailable(
  code: 'overloaded' | 'draining',
  message: string,
  headers: Readonly<Record<string, string>>,
): ProtocolError {
  return new ProtocolError(503, { error: { message, type: 'server_error', param: null, code } }, headers);
}

/** A rate limit is reached. @param headers with the wait: see `retryAfterHeaders`. */
export function rateLimited(message: string, headers: Readonly<Record<string, string>>): ProtocolError {
  return new ProtocolError(429, { error: { message, type: 'requests', param: null, code: 'rate_limit_exceeded' } }, headers);
}
