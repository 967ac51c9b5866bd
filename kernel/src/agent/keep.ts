import { begin } from './diagnostics.js';
import { TurnError } from './event.js';
import type { SessionId } from './points/session-store.js';

/** Lets the session store work, seen by whoever watches. @throws TurnError `store_failed` for whatever it throws. */
export async function keep<T>(work: () => Promise<T>, operation: string, session?: SessionId): Promise<T> {
  const span = begin('store', () => ({ operation, session }));
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.fail(error);
    throw new TurnError('store_failed', 'The session store failed; nothing of the request was kept.', { cause: error });
  }
}
