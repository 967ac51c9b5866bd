import { subscribe } from 'node:diagnostics_channel';
import { conversationId, type SessionId, TurnError } from '@plugboard/kernel/contracts';

/**
 * Conversation ids of the sessions whose work held up an earlier process until its watchdog ended
 * it (S-19). The program publishes them at its start, as `{ conversation }` on `plugboard.blocked`.
 */
const blocked = new Set<string>();

subscribe('plugboard.blocked', (message) => {
  blocked.add((message as { readonly conversation: string }).conversation);
});

/** What may be done with such a session: it can be seen in lists, and deleted. */
const ALLOWED: ReadonlySet<string> = new Set(['info', 'version', 'delete']);

/** Whether a session is closed because its work held up an earlier process. */
export function isBlocked(session: SessionId): boolean {
  return blocked.size > 0 && blocked.has(conversationId(session));
}

/** @throws TurnError `session_quarantined` for a session that is closed. */
export function assertNotBlocked(operation: string, session: SessionId | undefined): void {
  if (session === undefined || ALLOWED.has(operation) || !isBlocked(session)) return;
  throw new TurnError(
    'session_quarantined',
    'The session is closed: work on it held up the server until it was ended. Delete the session, or ask the operator to open it.',
  );
}

/** A session that was deleted can be used again. */
export function unblock(session: SessionId | undefined): void {
  if (session !== undefined && blocked.size > 0) blocked.delete(conversationId(session));
}
