/** What an `HttpError` carries besides its status and message. */
export interface HttpErrorOptions {
  /** A word for programs and for the log, for example `request_too_large`. */
  readonly code?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The body, as JSON. Without one, the error formatter of the server makes it. */
  readonly body?: object | undefined;
}

/** A refusal: thrown by a route or by the transport, answered with its status. */
export class HttpError extends Error {
  override readonly name: string = 'HttpError';
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
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
}

/**
 * The headers that tell a client when to try again.
 *
 * @param wait milliseconds. Clients are told a minute at most: beyond that they choose their own time.
 */
export function retryAfterHeaders(wait: number): Readonly<Record<string, string>> {
  const ms = Math.min(Math.max(Math.ceil(wait), 1), 60_000);
  return { 'retry-after': String(Math.ceil(ms / 1000)), 'retry-after-ms': String(ms) };
}
