import { hash } from 'node:crypto';
import type { SessionId } from './conversation-store.js';

/** The prefix of every opaque session id. Keys from callers must not start with it. @public */
export const CONVERSATION_PREFIX = 'conv_';

/** Returns the opaque id of a session: a hash of its three values. @public */
export function conversationId({ project, agent, key }: SessionId): string {
  return `${CONVERSATION_PREFIX}${hash('sha256', JSON.stringify([project, agent, key])).slice(0, 40)}`;
}

/** Whether a text has the form of an opaque session id. @public */
export function isConversationId(text: string): boolean {
  return /^conv_[0-9a-f]{40}$/.test(text);
}
