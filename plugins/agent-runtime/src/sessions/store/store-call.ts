import type { Clock } from '@plugboard/kernel';
import type { SessionId } from '@plugboard/kernel/contracts';
import { Account, ProjectQuotaExceeded, TurnError, VersionConflict } from '@plugboard/kernel/contracts';
import { startSpan } from '../../engine/diagnostics/channels.js';
import { assertNotBlocked, unblock } from './blocked-sessions.js';

/** Time limit of one store operation, in milliseconds. */
const STORE_TIMEOUT = 30_000;

/**
 * Runs one operation of the session store under a time limit, and publishes it on
 * `plugboard.store`.
 *
 * @throws a TurnError of the work itself; else TurnError `session_quarantined` for a blocked
 *   session, `quota_exceeded` if the project has reached a limit of the store, `session_busy` if
 *   another writer was faster, and `store_failed` if the store throws or does not answer in time. It
 *   is then unknown whether a write took effect, or still will, and the message says so.
 */
export type StoreCall = <T>(work: () => Promise<T>, operation: string, session?: SessionId) => Promise<T>;

const OUTRUN = 'Another request changed the session before this one was stored, and nothing of this one was kept. Send it again.';

/** Operations that change nothing. */
const READS: ReadonlySet<string> = new Set([
  'load',
  'version',
  'info',
  'find',
  'list',
  'turns',
  'documents.get',
  'approvals.get',
  'approvals.find',
  'approvals.waiting',
  'idempotency.get',
  'pendingToolCalls.load',
]);

/** What is true of an operation that failed, or did not answer in time. */
function messageOf(operation: string): string {
  if (READS.has(operation)) return 'The session store failed to answer.';
  // What a store begins too late is abandoned.
  if (operation === 'begin') return 'The session store failed; the turn was not run.';
  return 'The session store failed, and it is unknown whether the request was stored. Read the session before you send it again.';
}

/** Reserves what a store is about to read, as messages. */
export function reserveIn(account: Account): (bytes: number) => void {
  return (bytes) => account.require(Account.costOf(bytes));
}

/** @param timeout time limit of one operation, in milliseconds. */
export function storeCalls(clock: Clock, timeout = STORE_TIMEOUT): StoreCall {
  return async <T>(work: () => Promise<T>, operation: string, session?: SessionId) => {
    const span = startSpan('store', () => ({ operation, session }));
    const { promise, resolve, reject } = Promise.withResolvers<T>(); // cheaper than `Promise.race`
    const timer = clock.after(timeout, () => reject(new Error(`no answer within ${timeout / 1000} s`)));
    try {
      assertNotBlocked(operation, session);
      Promise.resolve(work()).then(resolve, reject);
      const result = await promise;
      if (operation === 'delete') unblock(session);
      span.end();
      return result;
    } catch (error) {
      span.fail(error);
      if (error instanceof TurnError) throw error;
      if (error instanceof ProjectQuotaExceeded) throw new TurnError('quota_exceeded', error.message, { cause: error });
      if (error instanceof VersionConflict) throw new TurnError('session_busy', OUTRUN, { cause: error });
      throw new TurnError('store_failed', messageOf(operation), { cause: error });
    } finally {
      timer.cancel();
    }
  };
}
