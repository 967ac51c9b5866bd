import type { Clock, Extensions, IdSource, Logger } from '@plugboard/kernel';
import { type ModelConnector, ModelError, type ModelEvent, type ModelRequest, TurnError } from '@plugboard/kernel';
import { delay } from './delay.js';

/** How often a connection is asked in all, before the next one is, or the turn fails. */
const MAX_ATTEMPTS = 3;
/** Milliseconds before the first and second repetition: 0.5 to 1 s, 1 to 2 s. */
const BACKOFF = [500, 1000];
/** A model server that asks for a longer wait than this is not waited for. */
const MAX_RETRY_AFTER = 8000;
/** A connection that failed this many times in a row is passed over for a while. */
const MAX_FAILURES = 3;
const COOLDOWN = 30_000;

interface StartedAnswer {
  readonly first: readonly ModelEvent[];
  /** What follows. Whoever leaves before its end calls `return`. */
  readonly rest: AsyncIterator<readonly ModelEvent[]>;
}

/** A model that has begun to answer. */
export interface Answer extends StartedAnswer {
  readonly connection: string;
}

/**
 * Asks models: again where that may help, and the next connection of an agent's list where it does not. Only before the first event: what has been streamed cannot
 * be taken back (reliability ).
 */
export class ModelCalls {
  readonly #models: Extensions<ModelConnector>;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** Where what goes wrong with models is told. */
  readonly log: Logger;
  readonly #failures = new Map<string, { consecutive: number; until: number }>();

  constructor(models: Extensions<ModelConnector>, clock: Clock, ids: IdSource, log: Logger) {
    this.#models = models;
    this.#clock = clock;
    this.#ids = ids;
    this.log = log;
  }

  /**
   * @param requestFor makes the request that a connection is sent: not every connection takes every parameter.
   * @throws TurnError `model_failed` where none of the connections answers.
   */
  async ask(
    connections: readonly string[],
    requestFor: (connector: ModelConnector) => ModelRequest,
    signal: AbortSignal,
  ): Promise<Answer> {
    let last: ModelError | undefined;
    for (const name of this.#healthy(connections)) {
      const connector = this.#models.get(name);
      if (!connector) continue;
      try {
        const { first, rest } = await this.#askWithRetries(name, connector, requestFor(connector), signal);
        this.#failures.delete(name);
        return { connection: name, first, rest };
      } catch (error) {
        if (signal.aborted || !(error instanceof ModelError)) throw error;
        this.#recordFailure(name);
        this.log.warn({ connection: name, err: error }, 'a model connection failed');
        last = error;
      }
    }
    throw modelFailed(last);
  }

  async #askWithRetries(name: string, connector: ModelConnector, request: ModelRequest, signal: AbortSignal) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await started(connector.stream(request, signal));
      } catch (error) {
        const pause = error instanceof ModelError ? this.#pauseBefore(attempt, error) : undefined;
        if (pause === undefined || signal.aborted) throw error;
        this.log.info({ connection: name, attempt, pause, err: error }, 'a model call failed and is made again');
        await delay(pause, this.#clock, signal);
      }
    }
  }

  /** Milliseconds to wait before another attempt; undefined where there is to be none. */
  #pauseBefore(attempt: number, error: ModelError): number | undefined {
    if (!error.retryable || attempt >= MAX_ATTEMPTS) return undefined;
    const jitter = this.#ids.fraction();
    if (error.retryAfter === undefined) return (BACKOFF[attempt - 1] ?? 0) * (1 + jitter);
    return error.retryAfter > MAX_RETRY_AFTER ? undefined : error.retryAfter + 1000 * jitter;
  }

  /** One that stands alone is asked whatever happened; so are all, where all have failed. */
  #healthy(connections: readonly string[]): readonly string[] {
    if (connections.length < 2) return connections;
    const now = this.#clock.monotonic();
    const well = connections.filter((name) => (this.#failures.get(name)?.until ?? 0) <= now);
    return well.length > 0 ? well : connections;
  }

  #recordFailure(name: string): void {
    const consecutive = (this.#failures.get(name)?.consecutive ?? 0) + 1;
    const until = consecutive >= MAX_FAILURES ? this.#clock.monotonic() + COOLDOWN : 0;
    this.#failures.set(name, { consecutive, until });
  }
}

/** What the caller is told when a model cannot be asked, or breaks off. */
export function modelFailed(error: ModelError | undefined): TurnError {
  const reason = error ? `The model connection failed: ${error.message}` : 'The agent has no model connection that is running.';
  return new TurnError('model_failed', reason, { cause: error });
}

/** Waits for the first batch, so that a failure before it can still be mended. */
async function started(events: AsyncIterable<readonly ModelEvent[]>): Promise<StartedAnswer> {
  const rest = events[Symbol.asyncIterator]();
  const first = await rest.next();
  if (first.done) throw new ModelError('it ended without an answer.', { retryable: true });
  return { first: first.value, rest };
}
