import { createHash } from 'node:crypto';
import type { SessionId } from './conversation-store.js';

/** What every opaque id of a session begins with; no key that a caller gives may. */
export const CONVERSATION_PREFIX = 'conv_';

/** The opaque id of a session: always the same for its three values, and nothing to be read from it. */
export function conversationId({ project, agent, key }: SessionId): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([project, agent, key]))
    .digest('hex');
  return `${CONVERSATION_PREFIX}${digest.slice(0, 40)}`;
}

/** Whether a text has the form of such an id. What has not is none, and no store is asked for it. */
export function isConversationId(text: string): boolean {
  return /^conv_[0-9a-f]{40}$/.test(text);
}
