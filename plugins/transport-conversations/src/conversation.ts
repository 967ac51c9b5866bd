import type { Conversation } from '@plugboard/kernel';

/** A conversation as callers see it: the reference protocol's fields, and what this server knows besides. */
export interface ConversationBody {
  readonly id: string;
  readonly object: 'conversation';
  /** Seconds since 1970, as `updated_at` is. */
  readonly created_at: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: Conversation['status'];
  /** How many turns are kept. */
  readonly turns: number;
  readonly updated_at: number;
  readonly agent: string;
  /** What a request gives as `session_id` to go on with it, or as `user`. */
  readonly key: string;
}

export function conversationBody(conversation: Conversation): ConversationBody {
  const { id, createdAt, updatedAt, metadata, status, turns } = conversation;
  return {
    id: conversation.conversation,
    object: 'conversation',
    created_at: Math.floor(createdAt / 1000),
    metadata,
    status,
    turns,
    updated_at: Math.floor(updatedAt / 1000),
    agent: id.agent,
    key: id.key,
  };
}
