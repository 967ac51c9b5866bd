import type { Conversation } from '@plugboard/kernel/contracts';

/**
 * A conversation in a response: the reference protocol's fields, and further ones of this server.
 */
export interface ConversationBody {
  readonly id: string;
  readonly object: 'conversation';
  /** Unix time in seconds, like `updated_at`. */
  readonly created_at: number;
  /** The start of its first message. Null while no user has said anything. */
  readonly title: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: Conversation['status'];
  /** The number of stored turns. */
  readonly turns: number;
  readonly updated_at: number;
  readonly agent: string;
  /** Send it as `session_id` or `user` to continue the conversation. */
  readonly key: string;
}

export function conversationBody(conversation: Conversation): ConversationBody {
  const { id, createdAt, updatedAt, title, metadata, status, turns } = conversation;
  return {
    id: conversation.conversation,
    object: 'conversation',
    created_at: Math.floor(createdAt / 1000),
    title: title ?? null,
    metadata,
    status,
    turns,
    updated_at: Math.floor(updatedAt / 1000),
    agent: id.agent,
    key: id.key,
  };
}
