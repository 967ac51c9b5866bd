import type { Clock, Extensions, IdSource, Logger, Turn } from '@plugboard/kernel';
import { type ModelConnector, ModelError, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import { type ModelInterceptor, TurnError } from '@plugboard/kernel/contracts';
import { reasonOf } from '../diagnostics/log-fields.js';
import { type ModelCaller, modelCaller, streamIntercepted } from './intercept-model.js';
import { type Remedies, remediesFor } from './remedies.js';

const MAX_ATTEMPTS = 3;
/** Milliseconds before the first and second retry, times 1 to 2. */
const BACKOFF = [500, 1000];
/** No retry if the model server asks for a longer wait, in milliseconds. */
const MAX_RETRY_AFTER = 8000;
/** After this many consecutive failures a connection is skipped for `COOLDOWN` milliseconds. */
const MAX_FAILURES = 3;
const COOLDOWN = 30_000;

type LogFields = Readonly<Record<string, unknown>>;

/** An answer whose first batch has arrived. */
export interface ModelAnswer {
  readonly connection: string;
  /** The request that it answers. */
  readonly asked: ModelRequest;
  readonly first: readonly ModelEvent[];
  /** The rest. A reader that stops early calls `return`. */
  readonly rest: AsyncIterator<readonly ModelEvent[]>;
}

/** The failures of model connections. A connection that a reload replaces starts without any. */
export type ConnectionFailures = WeakMap<ModelConnector, { readonly consecutive: number; readonly until: number }>;

/**
 * Calls models, with retries and fallback to the next connection of the agent. Only before the
 * first event: streamed text cannot be taken back.
 */
export class ModelCalls {
  readonly #models: Extensions<ModelConnector>;
  readonly #interceptors: Extensions<ModelInterceptor>;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** The log for failures of models. */
  readonly log: Logger;
  readonly #failures: ConnectionFailures;

  constructor(
    models: Extensions<ModelConnector>,
    interceptors: Extensions<ModelInterceptor>,
    clock: Clock,
    ids: IdSource,
    log: Logger,
    failures: ConnectionFailures = new WeakMap(),
  ) {
    this.#models = models;
    this.#interceptors = interceptors;
    this.#clock = clock;
    this.#ids = ids;
    this.log = log;
    this.#failures = failures;
  }

  /**
   * Who asks, for model interceptors. Undefined without any.
   * @param step from 1; 0 for a summary.
   */
  caller(turn: Turn, step: number): ModelCaller | undefined {
    return this.#interceptors.all().length === 0 ? undefined : modelCaller(turn, step);
  }

  /**
   * @param requestFor builds the request for a connection: connections support different
   *   parameters.
   * @param asker who asks, for log lines.
   * @param caller who asks, for model interceptors.
   * @param mayTrim whether the oldest turns may be left out for a model that finds the conversation
   *   too long.
   * @throws TurnError if no connection answers: `model_failed`, or the code of the last failure.
   *   What else is thrown is not tried again, such as the refusal of an interceptor.
   */
  async ask(
    connections: readonly string[],
    requestFor: (connector: ModelConnector, name: string) => ModelRequest,
    signal: AbortSignal,
    asker: LogFields,
    caller: ModelCaller | undefined,
    mayTrim = false,
  ): Promise<ModelAnswer> {
    let last: ModelError | undefined;
    let requests = 0;
    for (const name of this.#healthy(connections)) {
      const connector = this.#models.get(name);
      if (!connector) continue;
      let request = requestFor(connector, name);
      let remedies: Remedies | undefined;
      let refusal: ModelError | undefined;
      for (let attempt = 1; ; ) {
        try {
          requests++;
          const call = caller && { ...caller, attempt: requests, connection: name, model: connector.model, request, signal };
          const answer = call ? streamIntercepted(this.#interceptors.all(), connector, call) : connector.stream(request, signal);
          const rest = answer[Symbol.asyncIterator]();
          const { value: first, done } = await rest.next(); // until the first batch, a failure can be retried
          if (done) throw new ModelError('it ended without an answer.', { retryable: true });
          this.#failures.delete(connector);
          remedies?.accepted();
          return { connection: name, asked: request, first, rest };
        } catch (error) {
          if (signal.aborted || !(error instanceof ModelError)) throw error;
          last = error;
        }
        remedies ??= remediesFor(request, name, connector, mayTrim);
        const remedy = remedies.after(last);
        if (remedy) {
          refusal ??= last;
          request = { ...request, messages: remedy.messages };
          this.log.warn({ ...asker, connection: name, reason: reasonOf(last) }, remedy.reason);
          continue;
        }
        // The refusal of the whole request says more than that of a part of it.
        if (refusal && last.isRequestFault) last = refusal;
        const pause = this.#pauseBefore(attempt, last);
        if (pause === undefined) break;
        this.log.info(
          { ...asker, connection: name, attempt, pause, reason: reasonOf(last) },
          'a model call failed and is retried',
        );
        await delay(pause, this.#clock, signal);
        attempt++;
      }
      if (!last.isRequestFault) this.#recordFailure(connector);
      this.onFailure(name, last, asker);
    }
    throw modelFailed(last);
  }

  /** Logs the failure of a call: all its attempts failed, or its answer broke off. */
  onFailure(connection: string, error: ModelError, asker: LogFields): void {
    this.log.warn({ ...asker, connection, reason: reasonOf(error) }, 'a model connection failed');
  }

  /** Milliseconds to wait before the next attempt, or undefined for no retry. */
  #pauseBefore(attempt: number, error: ModelError): number | undefined {
    if (!error.retryable || attempt >= MAX_ATTEMPTS) return undefined;
    const jitter = this.#ids.fraction();
    if (error.retryAfter === undefined) return (BACKOFF[attempt - 1] ?? 0) * (1 + jitter);
    const asked = error.retryAfter * 1000;
    return asked > MAX_RETRY_AFTER ? undefined : asked + 1000 * jitter;
  }

  /**
   * Skips connections that failed repeatedly, unless all of them have. A single connection is
   * always tried.
   */
  #healthy(connections: readonly string[]): readonly string[] {
    if (connections.length < 2) return connections;
    const now = this.#clock.monotonic();
    const well = connections.filter((name) => {
      const connector = this.#models.get(name);
      return connector === undefined || (this.#failures.get(connector)?.until ?? 0) <= now;
    });
    return well.length > 0 ? well : connections;
  }

  #recordFailure(connector: ModelConnector): void {
    const consecutive = (this.#failures.get(connector)?.consecutive ?? 0) + 1;
    const until = consecutive >= MAX_FAILURES ? this.#clock.monotonic() + COOLDOWN : 0;
    this.#failures.set(connector, { consecutive, until });
  }
}

/** The error for the caller if a model call fails. */
export function modelFailed(error: ModelError | undefined): TurnError {
  if (!error) return new TurnError('model_failed', 'No model connection of the agent is running.');
  const { code = 'model_failed', message, retryAfter, isUpstream, retryable } = error;
  return new TurnError(code, `The model connection failed: ${message}`, {
    cause: error,
    retryAfter,
    isUpstream: isUpstream || undefined,
    retryable: retryable || undefined,
  });
}

/** Resolves after `ms` milliseconds. @throws the signal's reason if it aborts first. */
function delay(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      timer.cancel();
      reject(signal.reason);
    };
    const timer = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
