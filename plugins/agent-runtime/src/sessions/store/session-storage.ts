import { type Extensions, type PluginContext, type SessionStore, SessionStores } from '@plugboard/kernel';
import type { SessionId, Timer } from '@plugboard/kernel/contracts';
import { Account, LeaseEnded, ProjectQuotaExceeded, TurnError, VersionConflict } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { startSpan } from '../../engine/diagnostics/channels.js';
import { assertNotBlocked, unblock } from './blocked-sessions.js';
import { endedLease } from './lease-ended.js';

/** Time limit of one store operation, in milliseconds. */
const STORE_TIMEOUT = 30_000;

/**
 * Time limit of the store's health check, in milliseconds: shorter than the timeout of a load
 * balancer's probe.
 */
const HEALTH_TIMEOUT = 2_000;

/** Operations that change nothing. */
const READS: ReadonlySet<string> = new Set([
  'load',
  'version',
  'info',
  'find',
  'findTurn',
  'list',
  'turns',
  'documents.get',
  'approvals.get',
  'approvals.find',
  'approvals.waiting',
  'pendingToolCalls.load',
]);

/** Operations of a turn that has not begun when they fail. */
const BEFORE_TURN: ReadonlySet<string> = new Set([...READS, 'acquire', 'begin', 'idempotency.claim']);

/** Seconds. A database is back soon, or not at all. */
const RETRY_AFTER = 5;

/** What is true of an operation that failed, or did not answer in time. */
function messageOf(operation: string): string {
  if (READS.has(operation)) return 'The session store failed to answer.';
  // What a store begins too late is abandoned.
  if (operation === 'begin') return 'The session store failed; the turn was not run.';
  return 'The session store failed, and it is unknown whether the request was stored. Read the session before you send it again.';
}

/** Another writer was faster. */
export function outrun(cause?: unknown): TurnError {
  const message =
    'Another request changed the session before this one was stored, and nothing of this one was kept. Send it again.';
  return new TurnError('session_busy', message, { cause });
}

/** Reserves what a store is about to read, as messages. */
export function reserveIn(account: Account): (bytes: number) => void {
  return (bytes) => account.require(Account.costOf(bytes));
}

/** The session store, and what every use of it has in common. */
export class SessionStorage {
  readonly #context: PluginContext;
  readonly #stores: Extensions<SessionStore>;
  #worked = true;

  constructor(@inject(CONTEXT) context: PluginContext) {
    this.#context = context;
    this.#stores = context.extensions(SessionStores);
  }

  get store(): SessionStore {
    return this.#stores.one();
  }

  /**
   * Runs one operation of the store under a time limit, and publishes it on `plugboard.store`.
   *
   * @param timeout in milliseconds.
   * @throws a TurnError of the work itself; else TurnError `session_quarantined` for a blocked
   *   session, `quota_exceeded` if the project has reached a limit of the store, `session_busy` if
   *   another writer was faster, and `store_failed` if the store throws or does not answer in time.
   *   It is then unknown whether a write took effect, or still will, and the message says so.
   */
  call<T>(
    work: (store: SessionStore) => Promise<T>,
    operation: string,
    session?: SessionId,
    timeout = STORE_TIMEOUT,
  ): Promise<T> {
    return this.#run(work, operation, session, timeout);
  }

  /**
   * Runs an operation that waits for other servers. What ends it is its signal.
   * @throws TurnError as `call`
   */
  wait<T>(work: () => Promise<T>, operation: string, session?: SessionId): Promise<T> {
    return this.#run(work, operation, session, undefined);
  }

  /** Written with few promises: each turn runs some operations. */
  #run<T>(
    work: (store: SessionStore) => Promise<T>,
    operation: string,
    session: SessionId | undefined,
    timeout: number | undefined,
  ): Promise<T> {
    const span = startSpan('store', () => ({ operation, session }));
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let timer: Timer | undefined;
    let isOver = false;
    const succeed = (result: T) => {
      if (isOver) return;
      timer?.cancel();
      if (operation === 'delete') unblock(session);
      span.end();
      resolve(result);
    };
    const fail = (error: unknown) => {
      if (isOver) return;
      isOver = true;
      timer?.cancel();
      span.fail(error);
      this.#errorOf(error, operation).then(reject, reject);
    };
    if (timeout !== undefined) timer = this.#context.clock.after(timeout, () => fail(late(timeout)));
    try {
      assertNotBlocked(operation, session);
      Promise.resolve(work(this.store)).then(succeed, fail);
    } catch (error) {
      fail(error);
    }
    return promise;
  }

  /** The error for the caller of an operation that failed. */
  async #errorOf(error: unknown, operation: string): Promise<TurnError> {
    if (error instanceof TurnError) return error;
    if (error instanceof ProjectQuotaExceeded) return new TurnError('quota_exceeded', error.message, { cause: error });
    if (error instanceof VersionConflict) return outrun(error);
    if (error instanceof LeaseEnded) return endedLease(error);
    if (this.store.shared && BEFORE_TURN.has(operation) && !(await this.isWorking())) return storeDown(error);
    return new TurnError('store_failed', messageOf(operation), { cause: error });
  }

  /**
   * Whether the store works: one that throws, or does not answer in time, does not. Logs once why,
   * and once that it works again. Never rejects.
   */
  async isWorking(): Promise<boolean> {
    try {
      const health = await this.call((store) => store.health(), 'health', undefined, HEALTH_TIMEOUT);
      this.#logHealth(health.ok, {}, health.reason ?? 'the store gives no reason');
      return health.ok;
    } catch (error) {
      const { cause: err = error } = error as Error; // what the store threw
      this.#logHealth(false, { err }, 'its health check failed');
      return false;
    }
  }

  #logHealth(works: boolean, fields: object, reason: string): void {
    if (works === this.#worked) return;
    this.#worked = works;
    const { log } = this.#context;
    if (works) log.info('the session store works again');
    else log.error(fields, `the session store does not work, so the server is not ready: ${reason}`);
  }
}

function late(timeout: number): Error {
  return new Error(`no answer within ${timeout / 1000} s`);
}

/** The request was not begun, and another server, or this one in a moment, may serve it (PG-30). */
function storeDown(cause: unknown): TurnError {
  const message = 'The session store does not work at the moment, and the request was not begun; try again in a moment.';
  return new TurnError('overloaded', message, { retryAfter: RETRY_AFTER, cause });
}
