import { recognizeAcrossCopies } from '@plugboard/kernel/contracts';

/** Options of an `HttpError`. */
export interface HttpErrorOptions {
  /** A machine-readable code for callers and the log, for example `request_too_large`. */
  readonly code?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The body, sent as JSON. By default the server's error formatter creates it. */
  readonly body?: object | undefined;
}

/** An error response. Throw it from a route; the server sends it with its status. */
export class HttpError extends Error {
  override readonly name: string = 'HttpError';

  static {
    recognizeAcrossCopies(HttpError, 'HttpError');
  }

  readonly code: string | undefined;
  headers: Readonly<Record<string, string>>;
  readonly body: object | undefined;

  constructor(
    readonly status: number,
    message: string,
    { code, headers = {}, body }: HttpErrorOptions = {},
  ) {
    super(message);
    this.code = code;
    this.headers = headers;
    this.body = body;
  }

  /** Adds headers to the reply. Returns the error itself. */
  with(headers: Readonly<Record<string, string>>): this {
    this.headers = { ...this.headers, ...headers };
    return this;
  }
}

/** Milliseconds: a year. */
const MAX_WAIT = 365 * 24 * 3_600_000;

/** Returns the headers `retry-after` and `retry-after-ms`. @param wait milliseconds. */
export function retryAfterHeaders(wait: number): Readonly<Record<string, string>> {
  const ms = Math.min(Math.max(Math.ceil(wait), 1), MAX_WAIT) || 1;
  return { 'retry-after': String(Math.ceil(ms / 1000)), 'retry-after-ms': String(ms) };
}
