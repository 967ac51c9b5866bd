/**
 * Close codes and reasons. The OpenAI SDKs reconnect after 1001, 1011, 1012 and 1013, and stay
 * closed after the others.
 */
export const CLOSE = {
  idle: [1000, 'idle'],
  maxAge: [1001, 'max_age'],
  textOnly: [1003, 'text_only'],
  tooManyErrors: [1008, 'too_many_errors'],
  restart: [1012, 'restart'],
  slowConsumer: [1013, 'slow_consumer'],
  overloaded: [1013, 'overloaded'],
  tokenRevoked: [4401, 'token_revoked'],
} as const satisfies Readonly<Record<string, readonly [code: number, reason: string]>>;

export type CloseReason = (typeof CLOSE)[keyof typeof CLOSE];
