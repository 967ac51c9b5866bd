import { type Conversations, failureOf, type Principal, type Target, TurnError } from '@plugboard/kernel';
import { invalidValue } from './request-errors.js';
import { turnFailureError } from './turn-failure.js';

/** A session that a request names by its opaque id. */
export interface NamedConversation {
  readonly conversation: string;
  /** The field or header that held the id. */
  readonly param: string;
}

/**
 * The key of a session that was named by its opaque id.
 *
 * @throws ProtocolError 404 where the caller reaches no session of that id; 400 where it is another agent's than the one that is to answer.
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
      `the conversation is one of the agent '${id.agent}', and 'model' leads to '${target.name}'. Send '${id.agent}' as 'model', or another '${param}'`,
    );
  } catch (error) {
    throw error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
  }
}
