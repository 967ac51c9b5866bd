import type { Logger, PluginContext } from '@plugboard/kernel';
import type {
  Account,
  ClaimResult,
  IdempotencyClaim,
  IdempotencyKey,
  IdempotencyRecord,
  TurnIdempotency,
} from '@plugboard/kernel/contracts';
import { failureOf, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { IdempotentTurn } from '../../engine/turn/turn-task.js';
import { reserveIn, SessionStorage } from './session-storage.js';

/**
 * Runs a request with an idempotency key once, however often it is sent. Keys of running turns are
 * claimed here, in memory; ended turns have a record in the store. If a turn fails before any tool
 * has started, its key is free again.
 */
export class IdempotencyClaims {
  readonly #storage: SessionStorage;
  readonly #log: Logger;
  readonly #claimed = new Map<string, IdempotencyClaim>();
  /** The claims that `run` was called with. Their turns own the keys. */
  readonly #used = new WeakSet<IdempotencyClaim>();
  /**
   * The keys that are being looked up in the store. Other requests with the same key wait, so that
   * two cannot both find it free.
   */
  readonly #asking = new Map<string, Promise<void>>();

  constructor(@inject(CONTEXT) { log }: PluginContext, @inject(SessionStorage) storage: SessionStorage) {
    this.#storage = storage;
    this.#log = log;
  }

  /** @see AgentRuntime.claim */
  async claim(key: IdempotencyKey, fingerprint: string, account: Account): Promise<ClaimResult> {
    const name = nameOf(key);
    while (this.#asking.has(name)) await this.#asking.get(name);
    const claimed = this.#claimed.get(name);
    if (claimed) return { kind: claimed.fingerprint === fingerprint ? 'running' : 'mismatch' };

    const asked = Promise.withResolvers<void>();
    this.#asking.set(name, asked.promise);
    try {
      const reserve = reserveIn(account);
      const record = await this.#storage.call((store) => store.idempotency.get(key, reserve), 'idempotency.get');
      if (record) return claimResultOf(record, fingerprint);
      const claim: IdempotencyClaim = {
        key,
        fingerprint,
        release: () => {
          if (!this.#used.has(claim)) this.#release(claim);
        },
      };
      this.#claimed.set(name, claim);
      return { kind: 'new', claim };
    } catch (err) {
      if (err instanceof TurnError && err.code === 'overloaded') return { kind: 'failed', failure: failureOf(err, false) };
      this.#log.warn({ err }, 'a request was not run: the session store failed to check its idempotency key');
      const unknown = new TurnError('store_failed', 'The session store failed; the turn was not run.', { cause: err });
      return { kind: 'failed', failure: failureOf(unknown, false) };
    } finally {
      this.#asking.delete(name);
      asked.resolve();
    }
  }

  /** Creates the turn of a claim. It keeps the key until it ends. */
  turn(idempotency: TurnIdempotency): IdempotentTurn {
    const { claim } = idempotency;
    this.#used.add(claim);
    return claimedTurn(idempotency, this.#storage, this.#log, () => this.#release(claim));
  }

  #release(claim: IdempotencyClaim): void {
    const name = nameOf(claim.key);
    if (this.#claimed.get(name) === claim) this.#claimed.delete(name);
  }
}

/** The record of a finished turn, which is stored with it. */
export function answerRecord(idempotency: TurnIdempotency): IdempotencyRecord {
  return recordOf(idempotency, { text: idempotency.recorder.text() });
}

function recordOf({ claim }: TurnIdempotency, result: IdempotencyRecord['result']): IdempotencyRecord {
  return { key: claim.key, fingerprint: claim.fingerprint, result };
}

/** Makes a turn that keeps its key until it ends. */
function claimedTurn(idempotency: TurnIdempotency, storage: SessionStorage, log: Logger, release: () => void): IdempotentTurn {
  let toolsBegan = false;
  let hasEnded = false;
  const put = (record: IdempotencyRecord) => storage.call((store) => store.idempotency.put(record), 'idempotency.put');
  return {
    async onToolsStart(signal) {
      if (toolsBegan) return;
      toolsBegan = true;
      await put(recordOf(idempotency, 'began'));
      signal.throwIfAborted();
    },
    add(batch) {
      idempotency.recorder.add(batch);
    },
    end() {
      hasEnded = true;
      release();
    },
    /** If tools of the turn had started, the failure is stored as its answer. */
    async fail(event) {
      if (hasEnded) return;
      hasEnded = true;
      try {
        // It is unknown whether a failed store operation took effect. The record, `began` or the
        // answer, is correct either way.
        if (!toolsBegan || event.failure.code === 'store_failed') return;
        idempotency.recorder.add([event]);
        await put(answerRecord(idempotency));
      } catch (err) {
        log.warn({ err }, 'could not store the failure of a turn; its tools had started, so a repeated request is refused');
      } finally {
        release();
      }
    },
  };
}

/** Returns the result of a claim whose key has a record in the store. */
function claimResultOf({ fingerprint, result }: IdempotencyRecord, wanted: string): ClaimResult {
  if (fingerprint !== wanted) return { kind: 'mismatch' };
  return result === 'began' ? { kind: 'interrupted' } : { kind: 'replay', text: result.text };
}

/** A unique text for the three values. */
function nameOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
