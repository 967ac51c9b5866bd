import type { Logger, PluginContext, SessionStore } from '@plugboard/kernel';
import type {
  Account,
  ClaimResult,
  IdempotencyClaim,
  IdempotencyKey,
  IdempotencyRecord,
  IdempotencyStore,
  TurnIdempotency,
} from '@plugboard/kernel/contracts';
import { failureOf, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { IdempotentTurn } from '../../engine/turn/turn-task.js';
import { reserveIn, SessionStorage } from './session-storage.js';

/**
 * Runs a request with an idempotency key once, however often it is sent. The store has the claims
 * of running turns and the records of ended ones. If a turn fails before any tool has started, its
 * key is free again.
 */
export class IdempotencyClaims {
  readonly #storage: SessionStorage;
  readonly #log: Logger;
  /** The claims that `run` was not called with, and that were not released. */
  readonly #unused = new WeakSet<IdempotencyClaim>();

  constructor(@inject(CONTEXT) { log }: PluginContext, @inject(SessionStorage) storage: SessionStorage) {
    this.#storage = storage;
    this.#log = log;
  }

  /** @see AgentRuntime.claim */
  async claim(key: IdempotencyKey, fingerprint: string, account: Account): Promise<ClaimResult> {
    const reserve = reserveIn(account);
    let isTooLate = false;
    const work = async ({ idempotency }: SessionStore) => {
      const found = await idempotency.claim(key, fingerprint, reserve);
      if (!found && isTooLate) await idempotency.release(key);
      return found;
    };
    try {
      const found = await this.#storage.call(work, 'idempotency.claim');
      if (found) return claimResultOf(found, fingerprint);
      const claim: IdempotencyClaim = {
        key,
        fingerprint,
        release: () => {
          if (this.#unused.delete(claim)) void this.#release(key);
        },
      };
      this.#unused.add(claim);
      return { kind: 'new', claim };
    } catch (err) {
      isTooLate = true;
      if (err instanceof TurnError && err.code === 'overloaded') return { kind: 'failed', failure: failureOf(err, false) };
      this.#log.warn({ err }, 'a request was not run: the session store failed to check its idempotency key');
      const unknown = new TurnError('store_failed', 'The session store failed; the turn was not run.', { cause: err });
      return { kind: 'failed', failure: failureOf(unknown, false) };
    }
  }

  /** Creates the turn of a claim. It keeps the key until it ends. */
  turn(idempotency: TurnIdempotency): IdempotentTurn {
    const { claim } = idempotency;
    this.#unused.delete(claim);
    return claimedTurn(idempotency, this.#storage, this.#log, () => this.#release(claim.key));
  }

  /** Never rejects. */
  async #release(key: IdempotencyKey): Promise<void> {
    try {
      await this.#storage.call((store) => store.idempotency.release(key), 'idempotency.release');
    } catch (err) {
      this.#log.warn({ err }, 'could not free an idempotency key; until the store works, a repeated request may be refused');
    }
  }
}

/** The record of a finished turn, which is stored with it. */
export function answerRecord(idempotency: TurnIdempotency): IdempotencyRecord {
  return recordOf(idempotency, { text: idempotency.recorder.text() });
}

function recordOf({ claim }: TurnIdempotency, result: IdempotencyRecord['result']): IdempotencyRecord {
  return { key: claim.key, fingerprint: claim.fingerprint, result };
}

/**
 * Makes a turn that keeps its key until it ends. An answer that is stored ends the claim.
 * @param release ends it without one. Never rejects.
 */
function claimedTurn(
  idempotency: TurnIdempotency,
  storage: SessionStorage,
  log: Logger,
  release: () => Promise<void>,
): IdempotentTurn {
  let toolsBegan = false;
  let hasEnded = false;
  const put = (record: IdempotencyRecord) => storage.call((store) => store.idempotency.put(record), 'idempotency.put');
  return {
    async onToolsStart(signal) {
      if (toolsBegan) return;
      signal.throwIfAborted(); // an overdue turn has its key no longer
      toolsBegan = true;
      await put(recordOf(idempotency, 'began'));
      signal.throwIfAborted();
    },
    add(batch) {
      idempotency.recorder.add(batch);
    },
    end() {
      hasEnded = true;
    },
    /** If tools of the turn had started, the failure is stored as its answer. */
    async fail(event) {
      if (hasEnded) return;
      hasEnded = true;
      // It is unknown whether a failed store operation took effect. The record, `began` or the
      // answer, is correct either way.
      if (!toolsBegan || event.failure.code === 'store_failed') return release();
      try {
        idempotency.recorder.add([event]);
        await put(answerRecord(idempotency));
      } catch (err) {
        log.warn({ err }, 'could not store the failure of a turn; its tools had started, so a repeated request is refused');
        await release();
      }
    },
  };
}

/** What a request gets whose key has a record, or another request that runs. */
function claimResultOf(
  { fingerprint, result }: NonNullable<Awaited<ReturnType<IdempotencyStore['claim']>>>,
  wanted: string,
): ClaimResult {
  if (fingerprint !== wanted) return { kind: 'mismatch' };
  if (result === 'running') return { kind: 'running' };
  return result === 'began' ? { kind: 'interrupted' } : { kind: 'replay', text: result.text };
}
