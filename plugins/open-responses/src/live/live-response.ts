import type { AgentEvent, Clock, Logger } from '@plugboard/kernel';
import {
  type Account,
  type AgentEvents,
  type Failure,
  failureOf,
  type Timer,
  TurnError,
  type TurnEvents,
} from '@plugboard/kernel/contracts';
import type { TurnLogFields } from '@plugboard/turn-routes';
import { type Outcome, outcomeOfFailure, outcomeOfFinish } from '../events/outcome.js';
import type { ResponseEncoder } from '../events/response-encoder.js';
import type { InputItem } from '../request/request.js';
import { EventLog } from './event-log.js';
import type { EventReader } from './event-reader.js';

/**
 * Milliseconds after which a turn that has not begun waits behind another one of its session, and
 * its response is queued.
 */
const QUEUED_AFTER = 100;
/** Milliseconds that a stored response runs on without a reader before it is cancelled. */
const RESUME_TIMEOUT = 30_000;

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
  /** The memory of the request, which it holds until its readers have left. */
  readonly account: Account;
  readonly session: LiveSession | undefined;
  /** Whether the client is Codex CLI, which knows few error codes. */
  readonly isCodex: boolean;
  /** What the request has and has no effect. */
  readonly ignored: readonly string[];
  readonly work: ResponseWork;
  readonly logFields: TurnLogFields;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * What a response needs until its end. It holds the request, and is dropped then: what has ended is
 * kept for a while, and the memory of the request no longer counts.
 */
export interface ResponseWork {
  /** The items of the request. */
  readonly input: readonly InputItem[];
  /** Runs the turn. Called once. */
  run(signal: AbortSignal): AgentEvents & Pick<TurnEvents, 'record'>;
  /** Receives each batch of the turn's events. */
  observe(batch: readonly AgentEvent[]): void;
  /**
   * Stores the response. Its end is reported after that.
   *
   * @param turn the number of the turn in its session; undefined if the turn left no trace in it.
   */
  store(end: ResponseEnd, turn: number | undefined): Promise<void>;
  /** Called once, after the last event. */
  onEnd(end: ResponseEnd): void;
}

/** The session of a response, as `svc:` events show it. */
export interface LiveSession {
  /** As the caller named it, else its opaque id. */
  readonly name: string;
  /** Turns queued before this one in its session (an estimate). */
  readonly ahead: number;
}

/** How a response ended. */
export interface ResponseEnd {
  readonly outcome: Outcome;
  /** The response at its end, as JSON. */
  readonly response: string;
  /** The failure, if the turn failed. */
  readonly failure: Failure | undefined;
}

/**
 * One response from its acceptance to its end. It drives its turn itself; connections only read its
 * events.
 *
 * 1. `open` starts the turn and waits until it is known how it begins: refused, running, or waiting
 *    in a queue.
 * 2. Readers join with `read`, from any event that is still kept. The slowest one sets the pace.
 * 3. It ends as its turn ends. `cancel` only asks the turn to end. A stored response waits 30 s for
 *    a reader to come back after the last one has left.
 * 4. Its memory, which the turn reserves, is free again when it has ended and its readers have
 *    left.
 */
export class LiveResponse {
  readonly id: string;
  readonly stored: boolean;
  readonly logFields: TurnLogFields;
  /** Resolves after the last event. */
  readonly ended: Promise<ResponseEnd>;
  readonly #options: Omit<LiveResponseOptions, 'work'>;
  readonly #encoder: ResponseEncoder;
  readonly #events = new EventLog(() => this.#onReaderLeft());
  readonly #abort = new AbortController();
  readonly #resolveEnded: (end: ResponseEnd) => void;
  readonly #leaveAccount: () => void;
  #work: ResponseWork | undefined;
  /** The turn, until the response has ended. */
  #source: Pick<TurnEvents, 'record'> = {};
  #end: ResponseEnd | undefined;
  #status: 'queued' | 'in_progress' = 'in_progress';
  /** The number of the turn in its session. */
  #turn: number | undefined;
  #isAbandoned = false;
  /** Runs while nobody reads. */
  #resumeTimer: Timer | undefined;

  constructor(options: LiveResponseOptions) {
    this.id = options.encoder.id;
    this.stored = options.stored;
    this.logFields = options.logFields;
    const { work, ...rest } = options;
    this.#options = rest;
    this.#work = work;
    this.#leaveAccount = options.account.hold();
    this.#encoder = options.encoder;
    const { promise, resolve } = Promise.withResolvers<ResponseEnd>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    if (!options.stored && !options.incremental) this.#events.dropRead();
  }

  /** How it ended; undefined while it runs. */
  get end(): ResponseEnd | undefined {
    return this.#end;
  }

  /** The items of the request; undefined when the response has ended. */
  get input(): readonly InputItem[] | undefined {
    return this.#work?.input;
  }

  /** The model connection that answered first; undefined while none has. */
  get connection(): string | undefined {
    return this.#encoder.connection;
  }

  /** The sequence number that the next event will have. */
  get nextSequence(): number {
    return this.#events.end;
  }

  /** Approximate bytes that it holds after its end: its events, and the response as JSON. */
  get bytes(): number {
    return this.#events.bytes + (this.#end?.response.length ?? 0);
  }

  /** The response in its current state, as JSON. */
  snapshot(): string {
    return this.#end?.response ?? this.#encoder.snapshot(this.#status);
  }

  /**
   * Starts the turn.
   *
   * @returns the failure if the turn was refused before it began; undefined if it runs or waits. A
   *   refused response has no events.
   */
  async open(): Promise<Failure | undefined> {
    const { clock, session } = this.#options;
    if (!this.#work) throw new Error('the response has ended');
    const source = this.#work.run(this.#abort.signal);
    this.#source = source;
    const turn = source[Symbol.asyncIterator]();
    const first = turn.next();
    const late = Promise.withResolvers<'late'>();
    const timer = session && clock.after(QUEUED_AFTER, () => late.resolve('late'));
    const begun = await Promise.race([first, late.promise]).catch(() => undefined); // `#drive` handles it
    timer?.cancel();
    if (begun === 'late') {
      this.#status = 'queued';
      this.#events.write(this.#encoder.begin('queued'));
      if (this.#encoder.extensions && session) this.#events.write([this.#encoder.queuePosition(session.ahead)]);
    } else {
      const [event] = begun?.done === false ? begun.value : [];
      if (event?.type === 'failed' && this.#isRefusal(event.failure)) return this.#refused(event.failure);
      this.#events.write(this.#encoder.begin('in_progress'));
    }
    const { ignored } = this.#options;
    if (this.#encoder.extensions && ignored.length > 0) this.#events.write([this.#encoder.ignoredParams(ignored)]);
    void this.#drive(first, turn);
    return undefined;
  }

  /**
   * Reads the events from a sequence number on.
   *
   * @param extensions whether the reader receives `svc:` events.
   * @returns undefined if the first of them is no longer kept.
   */
  read(from: number, extensions: boolean): EventReader | undefined {
    const reader = this.#events.join(from, extensions);
    if (!reader) return undefined;
    this.#resumeTimer?.cancel();
    // Responses that are not stored cannot be resumed, so their events are dropped.
    if (!this.stored) this.#events.dropRead();
    return reader;
  }

  /**
   * Asks the turn to end. The response ends as the turn does: cancelled, cut short because the
   * server stops, or complete if the turn is being stored.
   */
  cancel(reason = new TurnError('turn_cancelled', 'The response was cancelled.')): void {
    if (this.#end || this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    this.#events.removeLimit();
  }

  /** The caller has disconnected and cannot come back. */
  abandon(): void {
    this.#isAbandoned = true;
    if (!this.#options.outlivesReaders) this.cancel();
  }

  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Whether a turn that failed at once has no response. A cancelled one has. */
  #isRefusal({ code }: Failure): boolean {
    return code !== 'context_length_exceeded' && !this.#abort.signal.aborted;
  }

  async #drive(first: Promise<IteratorResult<readonly AgentEvent[]>>, turn: AsyncIterator<readonly AgentEvent[]>): Promise<void> {
    let end: ResponseEnd | undefined;
    try {
      for (let next = await first; !end; next = await turn.next()) {
        if (next.done) throw new Error('the events of a turn ended without a terminal event');
        end = await this.#take(next.value);
      }
    } catch (error) {
      this.#options.log.error({ err: error, response_id: this.id }, 'a response failed');
      await turn.return?.();
      end = this.#fail(failureOf(error, true));
    }
    await this.#store(end);
    this.#announce('idle');
    this.#events.write([this.#encoder.terminal(end.outcome, end.response)]);
    this.#conclude(end);
  }

  /** Publishes a batch. Returns the end of the response if it is the last one. */
  async #take(batch: readonly AgentEvent[]): Promise<ResponseEnd | undefined> {
    const [first] = batch;
    const last = batch.at(-1);
    if (first?.type === 'started') this.#begin(first.turn);
    this.#work?.observe(batch);
    const full = this.#events.write(this.#encoder.write(batch, this.#events.isPressed));
    if (this.#encoder.extensions) this.#showProgress(batch);
    if (last?.type === 'finished') {
      this.logFields.finished(last);
      return this.#close(outcomeOfFinish(last), undefined);
    }
    if (last?.type === 'failed') return this.#fail(last.failure);
    if (full) await full;
    return undefined;
  }

  /** The turn runs. @param turn its number in its session. */
  #begin(turn: number | undefined): void {
    this.#turn = turn;
    if (this.#status === 'queued') {
      this.#status = 'in_progress';
      this.#events.write([this.#encoder.start()]);
    }
    this.#announce('running');
  }

  #fail(failure: Failure): ResponseEnd {
    return this.#close(outcomeOfFailure(failure, this.#encoder.usage, this.#options.isCodex), failure);
  }

  /** Ends the items that are still open, and renders the response. */
  #close(outcome: Outcome, failure: Failure | undefined): ResponseEnd {
    this.#events.write(this.#encoder.close(outcome));
    const response = this.#encoder.response(outcome, Math.floor(this.#options.clock.now() / 1000));
    return { outcome, response, failure };
  }

  async #store(end: ResponseEnd): Promise<void> {
    try {
      await this.#work?.store(end, end.failure ? undefined : this.#turn);
    } catch (error) {
      this.#options.log.warn({ err: error, response_id: this.id }, 'a response could not be stored');
    }
  }

  /** The turn was refused before it began: there is no response. */
  #refused(failure: Failure): Failure {
    this.#conclude({ outcome: outcomeOfFailure(failure, undefined), response: '', failure });
    return failure;
  }

  #conclude(end: ResponseEnd): void {
    this.#end = end;
    if (end.failure) this.logFields.failed(end.failure);
    this.#resumeTimer?.cancel();
    this.#encoder.release();
    this.#events.close();
    if (this.#events.readers === 0) this.#leaveAccount();
    this.#resolveEnded(end);
    this.#work?.onEnd(end);
    this.#work = undefined;
    this.#source = {};
  }

  /** Writes `svc:session.state`, if a connection asked for it. */
  #announce(state: 'running' | 'idle'): void {
    const { session } = this.#options;
    if (!this.#encoder.extensions || !session || this.#turn === undefined) return;
    this.#events.write([this.#encoder.sessionState(session.name, state, this.#turn)]);
  }

  /** Writes `svc:turn.progress`, if the batch has changed what is known of the turn. */
  #showProgress(batch: readonly AgentEvent[]): void {
    const { record } = this.#source;
    const event = record && this.#encoder.progress(batch, this.#turn, record);
    if (event !== undefined) this.#events.write([event]);
  }

  #onReaderLeft(): void {
    if (this.#events.readers > 0) return;
    if (this.#end) this.#leaveAccount();
    else if (this.#options.outlivesReaders) return;
    else if (this.#options.resumable) this.#resumeTimer = this.#options.clock.after(RESUME_TIMEOUT, () => this.cancel());
    else this.cancel();
  }
}
