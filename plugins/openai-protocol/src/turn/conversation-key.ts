import type { Principal } from '@plugboard/kernel';
import { type Conversations, failureOf, type Target, TurnError } from '@plugboard/kernel/contracts';
import { invalidValue } from '../errors/request-errors.js';
import { turnFailureError } from '../errors/turn-failure.js';

/** A session named by its conversation id. */
export interface NamedConversation {
  readonly conversation: string;
  /** The field or header with the id. */
  readonly param: string;
}

/**
 * Looks up the session key of a conversation id.
 *
 * @throws ProtocolError 404 if the caller has no such session, 400 if it belongs to another agent
 * than `target`.
 */
export async function conversationSessionKey(
  { conversation, param }: NamedConversation,
  target: Target,
  principal: Principal,
  conversations: Conversations,
): Promise<string> {
  try {
    const { id } = await conversations.get(conversation, principal);
    if (id.agent === target.name) return id.key;
    throw invalidValue(
      param,
      `the conversation belongs to the agent '${id.agent}', but 'model' selects '${target.name}'. Send '${id.agent}' as 'model', or another '${param}'`,
    );
  } catch (error) {
    throw error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
  }
}
