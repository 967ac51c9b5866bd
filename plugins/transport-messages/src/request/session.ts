import { isBlankKey, sessionKeyProblem } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { isConversationId, type NamedSession, sessionHeaderOf } from '@plugboard/turn-routes';
import type { MessagesConfig } from '../config.js';
import { invalidField } from '../errors/messages-error.js';

const HEADER = 'X-Session-Id';

/**
 * The session in the header `X-Session-Id`; undefined for a request without one. Blank values count
 * as absent.
 *
 * @param user named by the request.
 * @throws MessagesError 400 for an invalid key.
 */
export function sessionOf(
  user: string | undefined,
  request: HttpRequest,
  { sessionFrom }: MessagesConfig,
): NamedSession | undefined {
  const id = sessionFrom.includes('header') ? sessionHeaderOf(request, invalidField) : undefined;
  if (id === undefined || isBlankKey(id)) return undefined;
  const key = checked(id, HEADER);
  if (isConversationId(key)) return { conversation: key, param: HEADER };
  return { key, user: user === undefined || isBlankKey(user) ? undefined : checked(user, 'metadata.user_id') };
}

function checked(key: string, field: string): string {
  const problem = sessionKeyProblem(key);
  if (!problem) return key;
  throw invalidField(
    field,
    problem.kind === 'too-long' ? `it has ${problem.bytes} bytes: the limit is ${problem.limit}` : problem.why,
  );
}
