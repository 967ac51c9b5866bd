import type { ResponseRequest } from './request.js';

/** The conversation that a request names: a key or an opaque id. */
export function conversationName({ conversation }: Pick<ResponseRequest, 'conversation'>): string | undefined {
  return typeof conversation === 'object' ? conversation.id : conversation;
}
