import type { Principal } from '@plugboard/kernel';
import {
  type AgentRuntime,
  CONVERSATION_PREFIX,
  failureOf,
  isBlankKey,
  type SessionRequest,
  sessionKeyProblem,
  type Target,
  TurnError,
} from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { busyModeOf, joinFingerprint, sessionHeaderOf } from '@plugboard/turn-routes';
import type { MessagesConfig } from '../config.js';
import { invalidField } from '../errors/messages-error.js';
import { turnFailureError } from '../errors/turn-failure.js';

const HEADER = 'X-Session-Id';

/**
 * The key or the conversation id in the header `X-Session-Id`; undefined for a request without a
 * session. A blank header counts as absent.
 *
 * @throws MessagesError 400 for an invalid key.
 */
export function sessionIdOf(request: HttpRequest, { sessionFrom }: MessagesConfig): string | undefined {
  const id = sessionFrom.includes('header') ? sessionHeaderOf(request, invalidField) : undefined;
  return id === undefined || isBlankKey(id) ? undefined : checked(id, HEADER);
}

/** @throws MessagesError 400, or 404 for an unknown conversation. */
export async function sessionOf(
  id: string,
  user: string | undefined,
  request: HttpRequest,
  target: Target,
  runtime: AgentRuntime,
): Promise<SessionRequest> {
  const busy = busyModeOf(request, invalidField);
  const isKnown = id.startsWith(CONVERSATION_PREFIX);
  const key = isKnown ? await conversationKey(id, target, request.principal, runtime) : id;
  const named = isKnown || user === undefined || isBlankKey(user) ? undefined : checked(user, 'metadata.user_id');
  return { key, user: named, fingerprint: joinFingerprint(request), busy };
}

async function conversationKey(id: string, target: Target, principal: Principal, runtime: AgentRuntime): Promise<string> {
  try {
    const { id: session } = await runtime.conversations.get(id, principal);
    if (session.agent === target.name) return session.key;
    throw invalidField(HEADER, `the conversation belongs to the agent '${session.agent}': send that name as 'model'`);
  } catch (error) {
    throw error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
  }
}

function checked(key: string, field: string): string {
  const problem = sessionKeyProblem(key);
  if (!problem) return key;
  throw invalidField(
    field,
    problem.kind === 'too-long' ? `it has ${problem.bytes} bytes: the limit is ${problem.limit}` : problem.why,
  );
}
