/** The document cannot be used. The message is half a sentence about it. */
export class DocumentFault extends Error {
  override readonly name = 'DocumentFault';
}

/** One operation cannot be a tool. The message is the reason. */
export class OperationFault extends Error {
  override readonly name = 'OperationFault';
}

/** A call failed. The message is for the model: no secret, and no address but the host. */
export class HttpCallError extends Error {
  override readonly name = 'HttpCallError';
  readonly code: 'http_arguments' | 'http_unreachable' | 'http_broken' | 'http_redirects';
  /** Whether the call took effect is unknown, as the message says. */
  readonly effect: 'unknown' | undefined;

  constructor(code: HttpCallError['code'], message: string, cause?: unknown, isHarmless = true) {
    super(message, { cause });
    this.code = code;
    this.effect = isHarmless ? undefined : 'unknown';
  }
}

export function badArgument(argument: string, reason: string): HttpCallError {
  return new HttpCallError('http_arguments', `the argument "${argument}" ${reason}`);
}

export function tooDeep(cause: unknown): HttpCallError {
  return new HttpCallError('http_arguments', 'the arguments are nested too deeply to be sent', cause);
}

/** Nothing was sent. */
export function unreachable(host: string, cause: unknown): HttpCallError {
  return new HttpCallError('http_unreachable', `${host} cannot be reached (${reasonOf(cause)}); nothing was sent`, cause);
}

/** The document, or a server's redirect, names a private address. */
export function privateAddress(host: string): HttpCallError {
  const cure = 'the operator can allow it with `allowPrivate`';
  return new HttpCallError('http_unreachable', `${host} has a private address, so nothing was sent to it; ${cure}`);
}

export function noHttp(protocol: string): HttpCallError {
  return new HttpCallError('http_unreachable', `it redirects to ${protocol}, which is not http or https`);
}

export function tooManyRedirects(host: string, most: number): HttpCallError {
  return new HttpCallError('http_redirects', `${host} redirects more than ${most} times`);
}

/** The first server has received a call that may write, and where it redirects failed. */
export function failedRedirect(host: string, { code, message }: HttpCallError): HttpCallError {
  return new HttpCallError(code, `${host} received the call and redirects: ${message}; ${outcome(false)}`, undefined, false);
}

/** The request was sent, in whole or in part. */
export function brokenOff(host: string, isHarmless: boolean, cause: unknown): HttpCallError {
  const message = `the connection to ${host} broke (${reasonOf(cause)}): ${outcome(isHarmless)}`;
  return new HttpCallError('http_broken', message, cause, isHarmless);
}

/** The head of the answer has arrived. */
export function unreadable(host: string, isHarmless: boolean, cause: unknown): HttpCallError {
  const message = `the answer of ${host} could not be read (${reasonOf(cause)}): ${outcome(isHarmless)}`;
  return new HttpCallError('http_broken', message, cause, isHarmless);
}

function outcome(isHarmless: boolean): string {
  return isHarmless ? 'the call can be repeated' : 'whether the call took effect is unknown';
}

export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  // The message of a system error has the address that was tried.
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
