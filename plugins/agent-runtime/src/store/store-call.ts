import type { Clock } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';
import { ProjectQuotaExceeded, TurnError } from '@plugboard/kernel/contracts';
import { startSpan } from '../diagnostics/channels.js';

/** Time limit of one store operation, in milliseconds. */
const STORE_TIMEOUT = 30_000;

/**
 * Runs one operation of the session store under a time limit, and publishes it on
 * `plugboard.store`.
 *
 * @throws a TurnError of the work itself; else TurnError `quota_exceeded` if the project has
 *   reached a limit of the store. `store_failed` if the store throws or does not answer in time.
 *   After a timeout it is unknown whether the operation took effect.
 */
export type StoreCall = <T>(work: () => Promise<T>, operation: string, session?: SessionId) => Promise<T>;

/** @param timeout time limit of one operation, in milliseconds. */
export function storeCalls(clock: Clock, timeout = STORE_TIMEOUT): StoreCall {
  return async <T>(work: () => Promise<T>, operation: string, session?: SessionId) => {
    const span = startSpan('store', () => ({ operation, session }));
    const { promise, resolve, reject } = Promise.withResolvers<T>(); // cheaper than `Promise.race`
    const timer = clock.after(timeout, () => reject(new Error(`no answer within ${timeout / 1000} s`)));
    try {
      Promise.resolve(work()).then(resolve, reject);
      const result = await promise;
      span.end();
      return result;
    } catch (error) {
      span.fail(error);
      if (error instanceof TurnError) throw error;
      if (error instanceof ProjectQuotaExceeded) throw new TurnError('quota_exceeded', error.message, { cause: error });
      throw new TurnError('store_failed', 'The session store failed; nothing of the request was kept.', { cause: error });
    } finally {
      timer.cancel();
    }
  };
}
