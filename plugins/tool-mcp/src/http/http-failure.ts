/**
 * A failure of HTTP itself: the server was not reached (`away`), the exchange broke after the
 * request was sent (`broken`), the answer is too large to be read (`too_large`), or there is no
 * token to send it with (`no_token`).
 */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
  readonly kind: 'away' | 'broken' | 'too_large' | 'no_token';

  constructor(kind: HttpFailure['kind'], message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}
