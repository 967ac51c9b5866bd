import type { StoredSession } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';

/** What a session may hold; one that holds as much takes nothing more. */
const MOST_MESSAGES = 50_000;
const MOST_BYTES = 64 * 1024 * 1024;

/** @throws TurnError `session_full` where the session holds as much as a session may. */
export function assertRoom({ messages, bytes }: StoredSession): void {
  if (messages.length < MOST_MESSAGES && bytes < MOST_BYTES) return;
  throw new TurnError(
    'session_full',
    `The session holds ${messages.length} messages (${bytes} bytes), and a session may hold ${MOST_MESSAGES} (${MOST_BYTES} bytes): begin a new one, or fork this one at an earlier turn.`,
  );
}
