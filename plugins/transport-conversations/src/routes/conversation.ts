import type { Conversation } from '@plugboard/kernel/contracts';

export type ConversationBody = ReturnType<typeof conversationBody>;

/**
 * A conversation in a response: the reference protocol's fields, and further ones of this server.
 * Times are Unix time in seconds.
 */
export function conversationBody({ conversation, id, createdAt, updatedAt, title, metadata, status, turns }: Conversation) {
  return {
    id: conversation,
    object: 'conversation',
    created_at: Math.floor(createdAt / 1000),
    title: title ?? null,
    metadata,
    status,
    /** The number of stored turns. */
    turns,
    updated_at: Math.floor(updatedAt / 1000),
    agent: id.agent,
    /** Send it as `session_id` or `user` to continue the conversation. */
    key: id.key,
  };
}
