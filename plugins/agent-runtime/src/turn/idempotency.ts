import type { AgentEvent, Extensions, Logger, SessionStore } from '@plugboard/kernel';
import type {
  AnswerRecorder,
  ClaimResult,
  IdempotencyClaim,
  IdempotencyKey,
  IdempotencyRecord,
  TurnIdempotency,
} from '@plugboard/kernel/contracts';
import { failureOf, TurnError, type TurnFailed } from '@plugboard/kernel/contracts';
import type { StoreCall } from '../sessions/store-call.js';

/**
 * Runs a request with an idempotency key once, however often it is sent. Keys of running turns are
 * claimed here, in memory; ended turns have a record in the store. If a turn fails before any tool
 * has started, its key is free again.
 */
export class IdempotencyClaims {
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #log: Logger;
  readonly #held = new Map<string, IdempotencyClaim>();
  /**
   * The keys that are being looked up in the store. Other requests with the same key wait, so that
   * two cannot both find it free.
   */
  readonly #asking = new Map<string, Promise<void>>();

  constructor(stores: Extensions<SessionStore>, storeCall: StoreCall, log: Logger) {
    this.#stores = stores;
    this.#storeCall = storeCall;
    this.#log = log;
  }

  /** @see AgentRuntime.claim */
  async claim(key: IdempotencyKey, fingerprint: string): Promise<ClaimResult> {
    const name = nameOf(key);
    while (this.#asking.has(name)) await this.#asking.get(name);
    const held = this.#held.get(name);
    if (held) return { kind: held.fingerprint === fingerprint ? 'running' : 'mismatch' };

    const asked = Promise.withResolvers<void>();
    this.#asking.set(name, asked.promise);
    try {
      const record = await this.#storeCall(() => this.#stores.one().idempotency.get(key), 'idempotency.get');
      if (record) return claimResultOf(record, fingerprint);
      const claim = { key, fingerprint };
      this.#held.set(name, claim);
      return { kind: 'new', claim };
    } catch (err) {
      this.#log.warn({ err }, 'a request was not run: the session store failed to check its idempotency key');
      const unknown = new TurnError('store_failed', 'The session store failed; the turn was not run.', { cause: err });
      return { kind: 'failed', failure: failureOf(unknown, false) };
    } finally {
      this.#asking.delete(name);
      asked.resolve();
    }
  }

  /** Creates the turn of a claim. It holds the key until it ends. */
  turn({ claim, recorder }: TurnIdempotency): IdempotentTurn {
    const name = nameOf(claim.key);
    const release = () => {
      if (this.#held.get(name) === claim) this.#held.delete(name);
    };
    return new IdempotentTurn(claim, recorder, this.#stores.one(), this.#storeCall, this.#log, release);
  }
}

/** A turn with an idempotency key, which must not run twice. It holds the key until it ends. */
export class IdempotentTurn {
  readonly #claim: IdempotencyClaim;
  readonly #recorder: AnswerRecorder;
  readonly #store: SessionStore;
  readonly #storeCall: StoreCall;
  readonly #log: Logger;
  readonly #release: () => void;
  #toolsBegan = false;
  /** Whether the answer is being stored. From then on, storing it decides how the turn ends. */
  #isStoring = false;
  #hasEnded = false;

  constructor(
    claim: IdempotencyClaim,
    recorder: AnswerRecorder,
    store: SessionStore,
    storeCall: StoreCall,
    log: Logger,
    release: () => void,
  ) {
    this.#claim = claim;
    this.#recorder = recorder;
    this.#store = store;
    this.#storeCall = storeCall;
    this.#log = log;
    this.#release = release;
  }

  /** Records that tools of the turn start. @throws the signal's reason if it has aborted. */
  async onToolsStart(signal: AbortSignal): Promise<void> {
    if (this.#toolsBegan) return;
    this.#toolsBegan = true;
    await this.#storeCall(() => this.#store.idempotency.put(this.#record('began')), 'idempotency.put');
    signal.throwIfAborted();
  }

  /** Stores the answer of a finished stateless turn. A session stores it with its commit. */
  async store(): Promise<void> {
    await this.#storeCall(() => this.#store.idempotency.put(this.beginStoring()), 'idempotency.put');
    this.end();
  }

  /** Records a batch for the answer. Failures are recorded by `fail`. */
  add(batch: readonly AgentEvent[]): void {
    if (batch.at(-1)?.type !== 'failed') this.#recorder.add(batch);
  }

  /** Returns the record of the finished turn. From now on, storing it decides how the turn ends. */
  beginStoring(): IdempotencyRecord {
    this.#isStoring = true;
    return this.#record({ text: this.#recorder.text() });
  }

  /** Ends the turn and releases the key. Nothing more is stored. */
  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  /**
   * Ends a failed turn. If its tools had started, the failure is stored as its answer. Never
   * rejects.
   */
  async fail(event: TurnFailed): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      if (this.#toolsBegan) await this.#storeFailure(event);
    } finally {
      this.#release();
    }
  }

  /**
   * Ends a turn that was refused, was dropped from the queue or is overdue. If its answer is being
   * stored, the result of that ends the turn instead.
   */
  drop(event: TurnFailed): void {
    if (!this.#isStoring) this.fail(event);
  }

  async #storeFailure(event: TurnFailed): Promise<void> {
    // It is unknown whether the failed store operation took effect. The record, `began` or the
    // answer, is correct either way.
    if (event.failure.code === 'store_failed') return;
    try {
      this.#recorder.add([event]);
      const record = this.#record({ text: this.#recorder.text() });
      await this.#storeCall(() => this.#store.idempotency.put(record), 'idempotency.put');
    } catch (err) {
      this.#log.warn({ err }, 'could not store the failure of a turn; its tools had started, so a repeated request is refused');
    }
  }

  #record(result: IdempotencyRecord['result']): IdempotencyRecord {
    const { key, fingerprint } = this.#claim;
    return { key, fingerprint, result };
  }
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
