import { isUtf8 } from 'node:buffer';
import { CONVERSATION_PREFIX } from '@plugboard/kernel';
import { headerLines, invalidValue, type NamedConversation, parseSessionKey } from '@plugboard/openai-protocol';
import type { HttpRequest } from '@plugboard/transport-http';
import type { ChatCompletionsConfig } from '../config.js';
import type { CompletionRequest } from './request.js';

const HEADER = 'x-session-id';

export type KeySource = ChatCompletionsConfig['sessionFrom'][number];

/** The session that a request belongs to, as the request names it. */
export type NamedSession =
  | {
      readonly key: string;
      /** Who is talking, where the request says so. */
      readonly user: string | undefined;
    }
  | NamedConversation;

/**
 * The session that a request belongs to, by the service document's table; undefined where it is stateless. A blank
 * value is none. The body's `session_id` wins over the header's. One that begins as opaque ids do is such an id, and says all by itself: `user` is nothing to it.
 *
 * @param sources where a key may come from; what else was sent is not looked at.
 * @throws ProtocolError 400 for a value that is no key.
 */
export function sessionOf(
  body: CompletionRequest,
  request: Pick<HttpRequest, 'headers' | 'rawHeaders'>,
  sources: readonly KeySource[],
): NamedSession | undefined {
  const fromBody = sources.includes('session_id') ? parseSessionKey(body.session_id, 'session_id') : undefined;
  const fromHeader = sources.includes('header') ? parseSessionKey(headerValue(request), 'X-Session-Id') : undefined;
  const user = sources.includes('user') ? parseSessionKey(body.user, 'user') : undefined;
  const session = fromBody ?? fromHeader;
  if (session?.startsWith(CONVERSATION_PREFIX)) {
    return { conversation: session, param: fromBody === undefined ? 'X-Session-Id' : 'session_id' };
  }
  const key = user === undefined || session === undefined || user === session ? (user ?? session) : `${user}:${session}`;
  return key === undefined ? undefined : { key, user };
}

/** What of a request has a say in which session it belongs to. */
export function sourcesBeside(session: NamedSession | undefined, sources: readonly KeySource[]): readonly KeySource[] {
  return session && 'conversation' in session ? sources.filter((source) => source !== 'user') : sources;
}

/** The bytes of the header, which Node hands over as Latin-1, read as UTF-8. */
function headerValue(request: Pick<HttpRequest, 'headers' | 'rawHeaders'>): string | undefined {
  if (request.headers[HEADER] === undefined) return undefined;
  const [value, ...others] = headerLines(request, HEADER);
  if (value === undefined) return undefined;
  if (others.length > 0) throw invalidValue('X-Session-Id', 'the header was sent more than once');
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) throw invalidValue('X-Session-Id', 'its bytes are no valid UTF-8');
  return bytes.toString('utf8');
}
