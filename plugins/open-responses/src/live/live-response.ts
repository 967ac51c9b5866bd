import type { AgentEvent, Clock, Logger } from '@plugboard/kernel';
import { type AgentEvents, type Failure, failureOf, type Timer, TurnError } from '@plugboard/kernel/contracts';
import type { TurnLogFields } from '@plugboard/openai-protocol';
import type { Lease } from '@plugboard/transport-http';
import { type Outcome, outcomeOfFailure, outcomeOfFinish } from '../events/outcome.js';
import type { ResponseEncoder } from '../events/response-encoder.js';
import { EventBuffer } from './event-buffer.js';
import { EventReader } from './reader.js';

/**
 * A turn that has not begun after this long waits behind another one of its session, and its
 * response is queued (ms).
 */
const QUEUED_AFTER = 100;
/** How long a stored response runs on without a reader before it is cancelled (ms). */
const RESUME_TIME = 30_000;
/**
 * The number of unread events at which the response waits for a reader, and at which it continues.
 */
const MOST_LAG = 64;
const LAG_TO_RESUME = 16;
/** The same in characters, for readers that are behind by few but large events. */
const MOST_LAG_SIZE = 64 * 1024;
/**
 * How many times a character of a response is in memory: in its item, in the transcript of the
 * turn, and at the end in what is stored and sent.
 */
const COPIES = 3;
/** Seconds after which a client may try again when memory is short. */
const RETRY_AFTER = 5;

/** What a live response is made of. */
interface LiveResponseOptions {
  readonly encoder: ResponseEncoder;
  /** Whether it can be found again by its id. */
  readonly stored: boolean;
  /** Whether it waits for a reader to come back after the last one left. */
  readonly resumable: boolean;
  /** Whether it runs to its end without readers. */
  readonly outlivesReaders: boolean;
  /** Whether the client that creates it reads its events. */
  readonly incremental: boolean;
  /** Counts the memory that it needs. */
  readonly memory: Lease;
  readonly session: LiveSession | undefined;
  /** Runs the turn. Called once. */
  run(signal: AbortSignal): AgentEvents;
  /** Keeps the finished response (JSON). It is reported as finished only after that. */
  keep(response: string): Promise<void>;
  /** Receives each batch of the turn's events. */
  observe?(batch: readonly AgentEvent[]): void;
  /** Called once, after the last event. */
  onEnd(end: ResponseEnd): void;
  /** What the access log shows of the turn. */
  readonly facts: TurnLogFields;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The session that a response belongs to, for `svc:` events. */
export interface LiveSession {
  /** As the caller named it, else its opaque id. */
  readonly name: string;
  /** How many turns of it, as far as is known, are ahead. */
  readonly ahead: number;
  /** The number that this turn will have in it. Called when the turn runs. */
  turn(): Promise<number>;
}

/** How a response ended. */
export interface ResponseEnd {
  readonly outcome: Outcome;
  /** The response as it was at the end, as JSON. */
  readonly response: string;
  /** Why the turn failed, where it did. */
  readonly failure: Failure | undefined;
}

/**
 * One response from its acceptance to its end. It drives its turn itself; connections only read its
 * events.
 *
 * 1. `open` starts the turn and waits until it is known how it begins: refused, running, or waiting
 *    in a queue.
 * 2. Readers join with `read`, from any event that is still kept. The slowest one sets the pace.
 * 3. It ends with its turn, or when it is cancelled. A stored response waits 30 s for a reader to
 *    come back after the last has left.
 * 4. It fails when its text does not fit into the memory for replies. That memory is free again
 *    when it has ended and its readers have left.
 */
export class LiveResponse {
  readonly id: string;
  readonly stored: boolean;
  readonly facts: TurnLogFields;
  /** Resolved after the last event. */
  readonly ended: Promise<ResponseEnd>;
  readonly #options: LiveResponseOptions;
  readonly #encoder: ResponseEncoder;
  readonly #buffer = new EventBuffer();
  readonly #readers = new Set<EventReader>();
  readonly #abort = new AbortController();
  /** Ends the wait that is going on, when the turn is aborted. */
  #interrupt: () => void = () => {};
  readonly #settle: (end: ResponseEnd) => void;
  #end: ResponseEnd | undefined;
  #status: 'queued' | 'in_progress' = 'in_progress';
  /** Resolved when the slowest reader has caught up. */
  #caughtUp: (() => void) | undefined;
  #deserted: Timer | undefined;

  constructor(options: LiveResponseOptions) {
    this.id = options.encoder.id;
    this.stored = options.stored;
    this.facts = options.facts;
    this.#options = options;
    this.#encoder = options.encoder;
    const { promise, resolve } = Promise.withResolvers<ResponseEnd>();
    this.ended = promise;
    this.#settle = resolve;
    this.#abort.signal.addEventListener('abort', () => this.#interrupt(), { once: true });
    if (!options.stored && !options.incremental) this.#buffer.dropTaken();
  }

  /** How it ended; undefined while it runs. */
  get end(): ResponseEnd | undefined {
    return this.#end;
  }

  /** The model connection that answered first; undefined while none has. */
  get connection(): string | undefined {
    return this.#encoder.connection;
  }

  /** The number that the next event will have. */
  get nextSequence(): number {
    return this.#buffer.end;
  }

  /** Characters that it holds after its end: its events, and the response as JSON. */
  get size(): number {
    return this.#buffer.size + (this.#end?.response.length ?? 0);
  }

  /** The response as it stands, as JSON. */
  snapshot(): string {
    return this.#end?.response ?? this.#encoder.snapshot(this.#status);
  }

  /**
   * Starts the turn.
   *
   * @returns why it was refused before it began; undefined if it runs or waits. A refused response
   *   has no events.
   */
  async open(): Promise<Failure | undefined> {
    const { clock, session } = this.#options;
    const iterator = this.#options.run(this.#abort.signal)[Symbol.asyncIterator]();
    const first = iterator.next();
    const late = Promise.withResolvers<'late'>();
    const timer = session && clock.after(QUEUED_AFTER, () => late.resolve('late'));
    let known: Awaited<typeof first> | 'late' | 'aborted';
    try {
      known = await this.#unlessAborted(Promise.race([first, late.promise]));
    } catch (error) {
      this.#refused(failureOf(error, false));
      throw error;
    } finally {
      timer?.cancel();
    }
    if (typeof known === 'object' && !known.done) {
      const [event] = known.value;
      if (event?.type === 'failed' && event.failure.code !== 'context_length_exceeded') return this.#refused(event.failure);
    }
    if (known === 'late') {
      this.#status = 'queued';
      this.#publish(this.#encoder.begin('queued'));
      if (this.#encoder.extensions && session) this.#publish([this.#encoder.queuePosition(session.ahead)]);
    } else this.#publish(this.#encoder.begin('in_progress'));
    void this.#drive(first, iterator);
    return undefined;
  }

  /**
   * The events from one number on.
   *
   * @returns undefined if the oldest of them are no longer kept.
   */
  read(from: number): EventReader | undefined {
    if (!this.#buffer.has(from)) return undefined;
    this.#deserted?.cancel();
    const reader = new EventReader(this.#buffer, from, {
      onProgress: () => this.#progressed(),
      onLeave: (gone) => this.#left(gone),
    });
    this.#readers.add(reader);
    // Nobody comes back for the events of a response that is not stored.
    if (!this.stored) this.#buffer.dropTaken();
    if (this.#end) reader.end();
    return reader;
  }

  /**
   * Ends the turn. The response ends as `reason` says: cancelled, or cut short because the server
   * stops.
   */
  cancel(reason = new TurnError('turn_cancelled', 'The response was cancelled.')): void {
    if (!this.#end) this.#abort.abort(reason);
  }

  /** The caller has disconnected and cannot come back. */
  abandon(): void {
    if (!this.#options.outlivesReaders) this.cancel();
  }

  async #drive(
    first: Promise<IteratorResult<readonly AgentEvent[]>>,
    iterator: AsyncIterator<readonly AgentEvent[]>,
  ): Promise<void> {
    try {
      this.#finish(await this.#run(first, iterator));
    } catch (error) {
      this.#options.log.error({ err: error, response_id: this.id }, 'a response failed');
      const failure = failureOf(error, true);
      this.#finish(this.#ending(outcomeOfFailure(failure, this.#encoder.usage), failure));
    } finally {
      // An aborted turn may take a while to settle. It is not awaited.
      iterator.return?.().catch(() => {});
    }
  }

  /** Publishes all events but the terminal one. */
  async #run(
    first: Promise<IteratorResult<readonly AgentEvent[]>>,
    iterator: AsyncIterator<readonly AgentEvent[]>,
  ): Promise<ResponseEnd> {
    let next = await this.#unlessAborted(first);
    if (this.#status === 'queued' && next !== 'aborted') {
      this.#status = 'in_progress';
      this.#publish([this.#encoder.start()]);
    }
    const turn = await this.#turn();
    this.#announce('running', turn);
    for (; next !== 'aborted'; next = await this.#unlessAborted(iterator.next())) {
      if (next.done) throw new Error('the events of a turn ended without a terminal event');
      const batch = next.value;
      this.#options.observe?.(batch);
      this.#publish(this.#encoder.write(batch, this.#isPressed()));
      const last = batch.at(-1);
      this.#count();
      if (last?.type === 'finished') {
        this.facts.finished(last);
        return this.#kept(outcomeOfFinish(last), turn);
      }
      if (this.#abort.signal.aborted) break; // a turn only reports that its reader has left; the reason is known here
      if (last?.type === 'failed') {
        const outcome = outcomeOfFailure(last.failure, this.#encoder.usage);
        this.#announce('idle', turn);
        return this.#ending(outcome, last.failure);
      }
      await this.#room();
    }
    const failure = failureOf(this.#abort.signal.reason, true);
    return this.#ending(outcomeOfFailure(failure, this.#encoder.usage), failure);
  }

  /** Counts the memory of the text so far. Cancels the turn if there is not enough. */
  #count(): void {
    const { memory } = this.#options;
    if (memory.resize(COPIES * this.#encoder.size)) return;
    const message = `The memory for replies is in use (\`${memory.setting}\`). Read earlier responses faster, or try again in a few seconds.`;
    this.cancel(new TurnError('overloaded', message, { retryAfter: RETRY_AFTER }));
  }

  /** Stores the response before it is reported as finished. */
  async #kept(outcome: Outcome, turn: number | undefined): Promise<ResponseEnd> {
    const ending = this.#ending(outcome, undefined);
    try {
      await this.#options.keep(ending.response);
    } catch (error) {
      this.#options.log.warn({ err: error, response_id: this.id }, 'a finished response could not be stored');
      const failure = {
        code: 'store_failed',
        message: 'The turn has finished, but its response could not be stored.',
        toolsRan: true,
      } as const;
      return this.#ending(outcomeOfFailure(failure, outcome.usage), failure);
    }
    this.#announce('idle', turn);
    return ending;
  }

  #ending(outcome: Outcome, failure: Failure | undefined): ResponseEnd {
    this.#publish(this.#encoder.close(outcome));
    const response = this.#encoder.response(outcome, Math.floor(this.#options.clock.now() / 1000));
    return { outcome, response, failure };
  }

  /** The turn was refused before it began: there is no response. */
  #refused(failure: Failure): Failure {
    this.#conclude({ outcome: outcomeOfFailure(failure, undefined), response: '', failure });
    return failure;
  }

  #finish(end: ResponseEnd): void {
    this.#publish([this.#encoder.terminal(end.outcome, end.response)]);
    this.#conclude(end);
  }

  #conclude(end: ResponseEnd): void {
    this.#end = end;
    if (end.failure) this.facts.failed(end.failure);
    this.#deserted?.cancel();
    this.#encoder.release();
    for (const reader of this.#readers) reader.end();
    if (this.#readers.size === 0) this.#options.memory.end();
    this.#settle(end);
    this.#options.onEnd(end);
  }

  /** The number of the turn in its session, if it is stored or sent. */
  async #turn(): Promise<number | undefined> {
    const { session, stored } = this.#options;
    return session && (stored || this.#encoder.extensions) ? session.turn() : undefined;
  }

  /** `svc:session.state`, for connections that asked for it. */
  #announce(state: 'running' | 'idle', turn: number | undefined): void {
    const { session } = this.#options;
    if (!this.#encoder.extensions || !session || turn === undefined) return;
    this.#publish([this.#encoder.sessionState(session.name, state, turn)]);
  }

  #publish(events: readonly string[]): void {
    if (events.length === 0) return;
    for (const event of events) this.#buffer.push(event);
    for (const reader of this.#readers) reader.wake();
    this.#trim();
  }

  /** Drops events beyond the limits of the buffer, except those that a reader still has to take. */
  #trim(): void {
    let needed = this.#buffer.end;
    for (const reader of this.#readers) needed = Math.min(needed, reader.position);
    this.#buffer.trim(needed);
  }

  /** Waits while the slowest reader is too far behind. */
  async #room(): Promise<void> {
    if (!this.#isBehind(MOST_LAG, MOST_LAG_SIZE)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#caughtUp = resolve;
    await this.#unlessAborted(promise);
  }

  /**
   * Waits for a result, or until the turn is aborted. No race with one long-lived promise: that
   * would keep every loser.
   */
  #unlessAborted<T>(pending: Promise<T>): Promise<T | 'aborted'> {
    if (this.#abort.signal.aborted) {
      pending.catch(() => {});
      return Promise.resolve('aborted');
    }
    return new Promise((resolve, reject) => {
      this.#interrupt = () => resolve('aborted');
      pending.then(resolve, reject);
    });
  }

  /** Whether a reader is behind by more events, or more characters, than these. */
  #isBehind(events: number, characters: number): boolean {
    for (const reader of this.#readers) {
      if (reader.lag > events || (reader.lag > 0 && reader.lagSize > characters)) return true;
    }
    return false;
  }

  #isPressed(): boolean {
    for (const reader of this.#readers) if (reader.pressed || reader.lag > LAG_TO_RESUME) return true;
    return false;
  }

  #progressed(): void {
    this.#trim();
    if (!this.#caughtUp || this.#isBehind(LAG_TO_RESUME, MOST_LAG_SIZE / 4)) return;
    this.#caughtUp();
    this.#caughtUp = undefined;
  }

  #left(reader: EventReader): void {
    this.#readers.delete(reader);
    this.#progressed();
    if (this.#readers.size === 0 && this.#end) this.#options.memory.end();
    if (this.#readers.size > 0 || this.#end || this.#options.outlivesReaders) return;
    if (!this.#options.resumable) this.cancel();
    else this.#deserted = this.#options.clock.after(RESUME_TIME, () => this.cancel());
  }
}
