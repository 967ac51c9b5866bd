import type { Clock, SessionId } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel';
import { startSpan } from '../diagnostics/channels.js';

/** How long a store may take for one operation, in milliseconds. What waits for it longer would wait for good, with all that it holds. */
const STORE_TIMEOUT = 30_000;

/**
 * Lets the session store work, seen by whoever watches.
 *
 * @throws TurnError `store_failed` for whatever the store throws, and where it does not answer in time: nobody knows then whether it has done it.
 */
export type StoreCall = <T>(work: () => Promise<T>, operation: string, session?: SessionId) => Promise<T>;

/** @param timeout milliseconds for one operation. */
export function storeCalls(clock: Clock, timeout = STORE_TIMEOUT): StoreCall {
  return async (work, operation, session) => {
    const span = startSpan('store', () => ({ operation, session }));
    const late = Promise.withResolvers<never>();
    const timer = clock.after(timeout, () => late.reject(new Error(`it has not answered for ${timeout / 1000} s`)));
    try {
      const result = await Promise.race([work(), late.promise]);
      span.end();
      return result;
    } catch (error) {
      span.fail(error);
      throw new TurnError('store_failed', 'The session store failed; nothing of the request was kept.', { cause: error });
    } finally {
      timer.cancel();
    }
  };
}
