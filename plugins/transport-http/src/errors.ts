/**
 * The protocol's error object. `svc_error` carries a message and a type only; every other type all four keys (null where there
 * is nothing to say).
 */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param?: string | null;
    readonly code?: string | null;
  };
}

/** What a route throws to answer with an error. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    readonly body: ErrorBody,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(body.error.message);
  }
}

/** A fault of the request: `invalid_request_error`, with all four keys. */
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
    code?: string | null;
    headers?: Readonly<Record<string, string>>;
  } = {},
): HttpError {
  return new HttpError(status, { error: { message, type: 'invalid_request_error', param, code } }, headers);
}

/** What the service document calls a service error: nothing resolves (400), out of scope (403), the turn failed (502). */
export function serviceError(
  status: 400 | 403 | 502,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  return new HttpError(status, { error: { message, type: 'svc_error' } }, headers);
}

/** The server cannot take this now (503), or broke outside a turn (500). */
export function serverError(
  status: 500 | 503,
  code: 'internal_error' | 'overloaded' | 'draining' | 'auth_unavailable',
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpError {
  return new HttpError(status, { error: { message, type: 'server_error', param: null, code } }, headers);
}

/**
 * A token has used up what it may use for now.
 * @param wait milliseconds after which asking again makes sense. Callers are told a minute at most: beyond that clients take their own time.
 */
export function rateLimited(message: string, wait: number): HttpError {
  const ms = Math.min(Math.max(Math.ceil(wait), 1), 60_000);
  return new HttpError(
    429,
    { error: { message, type: 'requests', param: null, code: 'rate_limit_exceeded' } },
    { 'retry-after': String(Math.ceil(ms / 1000)), 'retry-after-ms': String(ms) },
  );
}
