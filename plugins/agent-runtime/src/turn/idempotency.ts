import type {
  AnswerRecorder,
  ClaimResult,
  Extensions,
  IdempotencyClaim,
  IdempotencyKey,
  IdempotencyRecord,
  Logger,
  SessionStore,
  TurnIdempotency,
} from '@plugboard/kernel';
import { type AgentEvent, type AgentEvents, failureOf, TurnError, type TurnFailed } from '@plugboard/kernel';
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

  /** The turn of a claim. Its key is held until it has ended. */
  turn({ claim, recorder }: TurnIdempotency): IdempotentTurn {
    const name = nameOf(claim.key);
    const release = () => {
      if (this.#held.get(name) === claim) this.#held.delete(name);
    };
    return new IdempotentTurn(claim, recorder, this.#stores.one(), this.#storeCall, this.#log, release);
  }
}

/**
 * One turn that must not run twice, from its beginning to its end. Whatever that is, the key is
 * held no longer then.
 */
export class IdempotentTurn {
  readonly #claim: IdempotencyClaim;
  readonly #recorder: AnswerRecorder;
  readonly #store: SessionStore;
  readonly #storeCall: StoreCall;
  readonly #log: Logger;
  readonly #release: () => void;
  #toolsBegan = false;
  /** Whether the store is being given the answer: what comes of that is the end. */
  #isKeeping = false;
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

  /**
   * The events of the loop itself. That tools are to run is written down before their calls are
   * passed on: the loop begins none of them until it is asked for what follows.
   */
  async *guard(events: AgentEvents, signal: AbortSignal): AsyncGenerator<readonly AgentEvent[]> {
    for await (const batch of events) {
      if (!this.#toolsBegan && batch.some((event) => event.type === 'tool-call' && event.tool !== undefined)) {
        this.#toolsBegan = true;
        await this.#storeCall(() => this.#store.idempotency.put(this.#record('began')), 'idempotency.put');
        signal.throwIfAborted();
      }
      yield batch;
    }
  }

  /**
   * The events of a stateless turn. Its answer is kept before anyone is told that it has finished,
   * as a session's commit would be.
   */
  async *kept(events: AgentEvents, signal: AbortSignal): AsyncGenerator<readonly AgentEvent[]> {
    for await (const batch of events) {
      this.add(batch);
      const last = batch.at(-1);
      if (last?.type !== 'finished') {
        yield batch;
        continue;
      }
      if (batch.length > 1) yield batch.slice(0, -1);
      signal.throwIfAborted();
      await this.#storeCall(() => this.#store.idempotency.put(this.answer()), 'idempotency.put');
      this.end();
      yield [last];
    }
  }

  /** What the turn's readers will be told; a failure is told to `fail`, where all of them end. */
  add(batch: readonly AgentEvent[]): void {
    if (batch.at(-1)?.type !== 'failed') this.#recorder.add(batch);
  }

  /** What is to be kept of the turn that finished. */
  answer(): IdempotencyRecord {
    this.#isKeeping = true;
    return this.#record({ text: this.#recorder.text() });
  }

  /** The turn has ended, and nothing more is to be kept of it. */
  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  /** The turn has failed. Where tools had begun, that is its answer from now on. Never rejects. */
  async fail(event: TurnFailed): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      if (this.#toolsBegan) await this.#keepFailure(event);
    } finally {
      this.#release();
    }
  }

  /** The session has given the turn up without waiting for its end. */
  giveUp(event: TurnFailed): void {
    if (!this.#isKeeping) this.fail(event);
  }

  async #keepFailure(event: TurnFailed): Promise<void> {
    // Nobody can say how much a store did that failed. It knows that tools began, and perhaps the
    // answer: either is right, and stays.
    if (event.failure.code === 'store_failed') return;
    try {
      this.#recorder.add([event]);
      const record = this.#record({ text: this.#recorder.text() });
      await this.#storeCall(() => this.#store.idempotency.put(record), 'idempotency.put');
    } catch (err) {
      this.#log.warn(
        { err },
        'could not keep how a turn failed; that its tools had begun is kept, and the same request is refused',
      );
    }
  }

  #record(result: IdempotencyRecord['result']): IdempotencyRecord {
    const { key, fingerprint } = this.#claim;
    return { key, fingerprint, result };
  }
}

/** What a request is told whose key is in the store. */
function seen({ fingerprint, result }: IdempotencyRecord, wanted: string): ClaimResult {
  if (fingerprint !== wanted) return { kind: 'mismatch' };
  return result === 'began' ? { kind: 'interrupted' } : { kind: 'replay', text: result.text };
}

/** One text for a key's three values, which no three others have. */
function nameOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
