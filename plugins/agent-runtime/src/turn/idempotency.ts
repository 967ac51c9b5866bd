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
 * Sees to it that a request with a key runs once, however often it is sent. What runs is known
 * here, in memory; what has ended is known to the store. A turn that failed before any tool began
 * leaves nothing in either: its key is free again.
 */
export class IdempotencyClaims {
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #log: Logger;
  readonly #held = new Map<string, IdempotencyClaim>();
  /**
   * The keys that the store is being asked for. Others wait meanwhile, so that no two find the same
   * key free.
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
      if (record) return seen(record, fingerprint);
      const claim = { key, fingerprint };
      this.#held.set(name, claim);
      return { kind: 'new', claim };
    } catch (err) {
      this.#log.warn({ err }, 'a request was not run, for the session store could not tell whether its idempotency key is free');
      const unknown = new TurnError('store_failed', 'The session store failed; the turn was not run.', { cause: err });
      return { kind: 'failed', failure: failureOf(unknown, false) };
    } finally {
      this.#asking.delete(name);
      asked.resolve();
    }
  }

  /** Creates the turn of a claim, which holds its key until it has ended. */
  turn({ claim, recorder }: TurnIdempotency): IdempotentTurn {
    const name = nameOf(claim.key);
    const release = () => {
      if (this.#held.get(name) === claim) this.#held.delete(name);
    };
    return new IdempotentTurn(claim, recorder, this.#stores.one(), this.#storeCall, this.#log, release);
  }
}

/** A turn with an idempotency key, which must not run twice. It holds the key until it has ended. */
export class IdempotentTurn {
  readonly #claim: IdempotencyClaim;
  readonly #recorder: AnswerRecorder;
  readonly #store: SessionStore;
  readonly #storeCall: StoreCall;
  readonly #log: Logger;
  readonly #release: () => void;
  #toolsBegan = false;
  /** Whether the answer is being stored. Its result is the end of the turn. */
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
    await this.#storeCall(() => this.#store.idempotency.put(this.answer()), 'idempotency.put');
    this.end();
  }

  /** Records a batch for the answer. Failures are recorded by `fail`. */
  add(batch: readonly AgentEvent[]): void {
    if (batch.at(-1)?.type !== 'failed') this.#recorder.add(batch);
  }

  /** Returns the record of the finished turn. */
  answer(): IdempotencyRecord {
    this.#isStoring = true;
    return this.#record({ text: this.#recorder.text() });
  }

  /** The turn has ended, and nothing more is stored. Releases the key. */
  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  /** The turn has failed. If its tools had started, the failure is its answer from now on. Never rejects. */
  async fail(event: TurnFailed): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      if (this.#toolsBegan) await this.#storeFailure(event);
    } finally {
      this.#release();
    }
  }

  /** The turn was abandoned before its end. */
  giveUp(event: TurnFailed): void {
    if (!this.#isStoring) this.fail(event);
  }

  async #storeFailure(event: TurnFailed): Promise<void> {
    // How much a failed store did is unknown. Its record, `began` or the answer, is right either way.
    if (event.failure.code === 'store_failed') return;
    try {
      this.#recorder.add([event]);
      const record = this.#record({ text: this.#recorder.text() });
      await this.#storeCall(() => this.#store.idempotency.put(record), 'idempotency.put');
    } catch (err) {
      this.#log.warn(
        { err },
        'the failure of a turn could not be stored; its tools had started, so a repetition of the request is refused',
      );
    }
  }

  #record(result: IdempotencyRecord['result']): IdempotencyRecord {
    const { key, fingerprint } = this.#claim;
    return { key, fingerprint, result };
  }
}

/** The state of a key that is in the store. */
function seen({ fingerprint, result }: IdempotencyRecord, wanted: string): ClaimResult {
  if (fingerprint !== wanted) return { kind: 'mismatch' };
  return result === 'began' ? { kind: 'interrupted' } : { kind: 'replay', text: result.text };
}

/** A unique text for the three values. */
function nameOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
