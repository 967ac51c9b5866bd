import type { StoredSession } from '@plugboard/kernel/contracts';
import { TurnError } from '@plugboard/kernel/contracts';

/** The size limit of a session. A session at the limit accepts no more turns. */
const MAX_MESSAGES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** @throws TurnError `session_full` if the session has reached its size limit. */
export function assertNotFull({ messages, bytes }: StoredSession): void {
  if (messages.length < MAX_MESSAGES && bytes < MAX_BYTES) return;
  throw new TurnError(
    'session_full',
    `The session has ${messages.length} messages (${bytes} bytes), and the limit is ${MAX_MESSAGES} (${MAX_BYTES} bytes): start a new session, or fork this one at an earlier turn.`,
  );
}
