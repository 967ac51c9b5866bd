import type { StoredSession } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';

/** What a session may hold; one that holds as much takes nothing more. */
const MAX_MESSAGES = 50_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** @throws TurnError `session_full` where the session holds as much as a session may. */
export function assertNotFull({ messages, bytes }: StoredSession): void {
  if (messages.length < MAX_MESSAGES && bytes < MAX_BYTES) return;
  throw new TurnError(
    'session_full',
    `The session holds ${messages.length} messages (${bytes} bytes), and a session may hold ${MAX_MESSAGES} (${MAX_BYTES} bytes): begin a new one, or fork this one at an earlier turn.`,
  );
}
