import { invalidValue, parseSessionKey } from '@plugboard/openai-protocol';
import type { HttpRequest } from '@plugboard/transport-http';
import { isConversationId, type NamedSession, sessionHeaderOf } from '@plugboard/turn-routes';
import type { ChatCompletionsConfig } from '../config.js';
import type { CompletionRequest } from './request.js';

export type KeySource = ChatCompletionsConfig['sessionFrom'][number];

/**
 * Finds the session of a request by the table in docs/reference/sessions.md, Keys; undefined if it
 * is stateless. Blank values count as absent. `session_id` in the body wins over the header. A
 * conversation id identifies the session alone; `user` is then ignored.
 *
 * @param sources where a key may come from; others are ignored.
 * @throws ProtocolError 400 for an invalid key.
 */
export function parseSession(
  body: CompletionRequest,
  request: Pick<HttpRequest, 'headers' | 'rawHeaders'>,
  sources: readonly KeySource[],
): NamedSession | undefined {
  const fromBody = sources.includes('session_id') ? parseSessionKey(body.session_id, 'session_id') : undefined;
  const fromHeader = sources.includes('header')
    ? parseSessionKey(sessionHeaderOf(request, invalidValue), 'X-Session-Id')
    : undefined;
  const user = sources.includes('user') ? parseSessionKey(body.user, 'user') : undefined;
  const session = fromBody ?? fromHeader;
  if (session !== undefined && isConversationId(session)) {
    return { conversation: session, param: fromBody === undefined ? 'X-Session-Id' : 'session_id' };
  }
  const key = user === undefined || session === undefined || user === session ? (user ?? session) : `${user}:${session}`;
  return key === undefined ? undefined : { key, user };
}

/** The sources that may name the session: without `user` if a conversation id names it. */
export function effectiveSources(session: NamedSession | undefined, sources: readonly KeySource[]): readonly KeySource[] {
  return session && 'conversation' in session ? sources.filter((source) => source !== 'user') : sources;
}
