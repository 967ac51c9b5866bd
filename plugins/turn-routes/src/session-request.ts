import type { Principal } from '@plugboard/kernel';
import {
  type AgentRuntime,
  CONVERSATION_PREFIX,
  type Conversations,
  type SessionRequest,
  type Target,
} from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { joinFingerprint } from './fingerprints.js';
import { busyModeOf, type InvalidHeader } from './request-headers.js';

/** The session that a request names: by its key, or by its conversation id. */
export type NamedSession =
  | {
      readonly key: string;
      /** The user named by the request. */
      readonly user: string | undefined;
    }
  | NamedConversation;

/** A session named by its conversation id. */
interface NamedConversation {
  readonly conversation: string;
  /** The field or header with the id. */
  readonly param: string;
}

/** Whether a valid session key is the id of a conversation. */
export function isConversationId(key: string): boolean {
  return key.startsWith(CONVERSATION_PREFIX);
}

/**
 * The session of a turn. The fingerprint lets a client that repeats a request join the turn it
 * started.
 *
 * @throws the error for a conversation of another agent or an unknown busy mode. @throws TurnError
 * `conversation_not_found`
 */
export async function sessionRequestOf(
  named: NamedSession,
  target: Target,
  request: Pick<HttpRequest, 'headers' | 'principal' | 'rawBody'>,
  { conversations }: AgentRuntime,
  invalid: InvalidHeader,
): Promise<SessionRequest> {
  const busy = busyModeOf(request, invalid);
  const fingerprint = joinFingerprint(request);
  if ('key' in named) return { key: named.key, user: named.user, fingerprint, busy };
  const key = await conversationKeyOf(named, target, request.principal, conversations, invalid);
  return { key, user: undefined, fingerprint, busy };
}

/**
 * The session key of a conversation id.
 *
 * @throws the error for a conversation of another agent than `target`. @throws TurnError
 * `conversation_not_found`
 */
export async function conversationKeyOf(
  { conversation, param }: NamedConversation,
  target: Target,
  principal: Principal,
  conversations: Conversations,
  invalid: InvalidHeader,
): Promise<string> {
  const { id } = await conversations.get(conversation, principal);
  if (id.agent === target.name) return id.key;
  throw invalid(
    param,
    `the conversation belongs to the agent '${id.agent}', but 'model' selects '${target.name}'. ` +
      `Send '${id.agent}' as 'model', or another '${param}'`,
  );
}
