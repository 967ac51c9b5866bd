import type { AgentEvent, Clock, IdSource } from '@plugboard/kernel';
import type { Account, Timer, Transcript, TurnEvents, TurnRecord, TurnRequest, WatchedTurn } from '@plugboard/kernel/contracts';
import { failed, failureOf, TurnError, type TurnFailed } from '@plugboard/kernel/contracts';
import { type Batch, endOf, type TurnEnd } from '../log/batch.js';
import { TurnLog } from '../log/turn-log.js';
import { SETTLE_TIMEOUT } from '../tools/abandoned-tools.js';
import { leaseLost, type TurnLease } from './turn-lease.js';
import { TurnReader } from './turn-reader.js';
import { type TurnRecorder, withReasoning } from './turn-recorder.js';

/**
 * Where a turn stands:
 *
 * - `waiting`: behind earlier turns of its session. Ending it takes effect at once.
 * - `running`: its phases run. Ending it aborts its signal; it ends when they settle.
 * - `storing`: the answer is complete and is being stored. The store alone decides how it ends.
 * - `ended`: its readers have, or are about to receive, the terminal event.
 * - `overdue`: it was aborted and did not settle within `SETTLE_TIMEOUT`. For everyone else it has
 *   ended, with a failure. What its code still does has no effect.
 */
type TurnState = 'waiting' | 'running' | 'storing' | 'ended' | 'overdue';

/** What keeps a turn with an idempotency key from running twice. */
export interface IdempotentTurn {
  /** Records that tools of the turn start. @throws the signal's reason if it has aborted. */
  onToolsStart(signal: AbortSignal): Promise<void>;
  /** Records a batch for the answer. */
  add(batch: Batch): void;
  /** Ends the turn and releases the key. Nothing more is stored. */
  end(): void;
  /** Ends a failed turn. Never rejects. */
  fail(event: TurnFailed): Promise<void>;
}

export interface TurnTaskOptions {
  readonly request: TurnRequest;
  /** The memory of the turn. */
  readonly account: Account;
  /** Equal for a retry of the same request, which joins the turn. */
  readonly fingerprint: string | undefined;
  /** Present if the request has an idempotency key. */
  readonly idempotent: IdempotentTurn | undefined;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/**
 * One turn from its request to its end, for all its readers. It alone decides who ends the turn,
 * what an event after the end does, and when what the turn holds is given back.
 *
 * 1. Its caller reads `events`. Retries of the same request `join`.
 * 2. `start` runs its phases (`TurnRunner`): at once, or when its session is free. They `write`
 *    events, and `defer` what must happen when the turn has ended.
 * 3. Whoever wants it to end early calls `requestEnd`: a reader, the session, the time limit, the
 *    server.
 * 4. `beginStoring` is the point of no return: from there, `requestEnd` does nothing.
 * 5. The phases end with `finish` or `fail`. What was deferred runs first, then the readers receive
 *    the terminal event: a caller that reads it can rely on free permits and an idle session.
 */
export class TurnTask {
  /** The number of the turn in its session, for its `started` event. Set when it begins. */
  number: number | undefined;
  /** Collects what happens in the turn. Set when it begins to run. */
  recorder: TurnRecorder | undefined;
  /** The turn as its watchers see it. Set when it is first watched. */
  watched: WatchedTurn | undefined;
  /** What the readers have received, as messages. Set with the answer. */
  transcript: Transcript | undefined;
  /**
   * Present while its session is leased from a store that several servers share. Nothing is sent
   * and no tool starts once it is lost.
   */
  lease: TurnLease | undefined;
  readonly request: TurnRequest;
  /** When the request arrived, on the monotonic clock. */
  readonly arrivedAt: number;
  /** The memory of the turn: what it is about to hold is reserved in it. */
  readonly account: Account;
  readonly fingerprint: string | undefined;
  readonly idempotent: IdempotentTurn | undefined;
  /** What its readers are sent. */
  readonly log: TurnLog;
  /** The events for the caller of the turn. */
  readonly events: TurnEvents;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  #turnId: string | undefined;
  readonly #abort = new AbortController();
  /** Made on first use. */
  #ended: PromiseWithResolvers<TurnEnd> | undefined;
  #state: TurnState = 'waiting';
  #terminal: TurnEnd | undefined;
  #toolsRan = false;
  #started: AgentEvent | undefined;
  readonly #deferred: (() => void)[] = [];
  #settling: Timer | undefined;
  /** Runs while a turn that is resumable has no reader. */
  #absence: Timer | undefined;
  readonly #leaveAccount: () => void;

  constructor({ request, account, fingerprint, idempotent, clock, ids }: TurnTaskOptions) {
    this.request = request;
    this.account = account;
    this.#leaveAccount = account.hold();
    this.fingerprint = fingerprint;
    this.idempotent = idempotent;
    this.#clock = clock;
    this.#ids = ids;
    this.arrivedAt = clock.monotonic();
    // Only a retry of the same request joins a turn that runs.
    this.log = new TurnLog(fingerprint !== undefined, this);
    // Ends the turn at once if its caller has gone already.
    this.events = this.#connect(new TurnReader(this), request.signal);
  }

  /** Aborts when the turn must end, with the error for the caller as the reason. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The id of its `Turn`, made on first use. */
  get turnId(): string {
    this.#turnId ??= turnIdOf(this.request.id ?? this.#ids.base62(20));
    return this.#turnId;
  }

  get hasEnded(): boolean {
    return this.#state === 'ended' || this.#state === 'overdue';
  }

  get state(): TurnState {
    return this.#state;
  }

  /** The terminal event, once the turn has ended. */
  get terminal(): TurnEnd | undefined {
    return this.#terminal;
  }

  /** Resolves with the terminal event. */
  get ended(): Promise<TurnEnd> {
    this.#ended ??= Promise.withResolvers();
    if (this.#terminal) this.#ended.resolve(this.#terminal);
    return this.#ended.promise;
  }

  /**
   * Milliseconds that the turn goes on without a reader. To continue to its end, its caller must
   * have a way to its answer: a session, or an idempotency key.
   */
  get #patience(): number {
    const { target, session, resumable = 0, parent } = this.request;
    if (parent) return 0; // it ends with its call
    const isReachable = session !== undefined || this.idempotent !== undefined;
    return target.onDisconnect === 'continue' && isReachable ? Number.POSITIVE_INFINITY : resumable;
  }

  /** What has happened in the turn so far; undefined before it runs. */
  get record(): TurnRecord | undefined {
    return this.recorder?.record;
  }

  /**
   * What its readers have received, in fewer events. The arguments of calls that the model is still
   * writing come whole with the call.
   */
  get soFar(): Batch {
    if (!this.#started) return [];
    return [this.#started, ...(this.transcript ? withReasoning(this.transcript.events(), this.recorder) : [])];
  }

  /**
   * Adds a reader, which receives the earlier events first: as they were, or in fewer events where
   * the log no longer has them.
   *
   * @param signal aborts when the caller disconnects. If its reason is a `TurnError`, it ends the
   *   turn for all readers: the server stops.
   * @param account in which the reader reserves what it reads.
   */
  join(signal: AbortSignal, account: Account): TurnEvents {
    const soFar = this.log.isWhole ? undefined : this.soFar;
    return this.#connect(new TurnReader(this, { account, soFar }), signal);
  }

  /**
   * Runs the phases, unless the turn has ended before it could start.
   * @param phases ends the turn with `finish` or `fail`, and calls `settled`. Never rejects.
   */
  start(phases: () => Promise<void>): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'running';
    void phases();
  }

  /** The phases have settled: the turn holds no memory any more. */
  settled(): void {
    this.#leaveAccount();
  }

  /**
   * Runs `release` when the turn has ended or is overdue, the last one first; at once if that is so
   * already.
   */
  defer(release: () => void): void {
    if (this.hasEnded) release();
    else this.#deferred.push(release);
  }

  /**
   * Sends a batch without a terminal event to the readers. Returns a promise if the turn has to
   * wait before it continues.
   *
   * @throws the signal's reason if the turn is overdue, or its lease is lost.
   */
  write(batch: Batch): Promise<unknown> | undefined {
    if (this.hasEnded) throw this.signal.reason;
    this.assertLease();
    for (const event of batch) if (event.type === 'tool-call' && event.tool !== undefined) this.#toolsRan = true;
    const [first] = batch;
    if (first?.type !== 'started') return this.log.write(batch);
    this.#started = this.number === undefined ? first : { ...first, turn: this.number };
    return this.log.write([this.#started, ...batch.slice(1)]);
  }

  /**
   * Tools of the agent are about to start. Returns a promise if the turn has to wait until that is
   * stored.
   */
  beginTools(): Promise<void> | undefined {
    this.assertLease();
    this.#toolsRan = true;
    return this.idempotent?.onToolsStart(this.signal);
  }

  /**
   * Ends the turn if its lease is lost (PG-16).
   * @throws TurnError `lease_lost`
   */
  assertLease(): void {
    if (!this.lease || this.lease.isHeld) return;
    this.requestEnd(leaseLost());
    throw this.signal.reason;
  }

  /**
   * The answer is about to be stored. From here on nothing but the store ends the turn.
   * @throws the signal's reason if the turn was aborted.
   */
  beginStoring(): void {
    this.signal.throwIfAborted();
    this.#state = 'storing';
  }

  /** Ends the turn with its last batch, which ends with the terminal event. */
  finish(last: Batch): void {
    if (this.hasEnded) return;
    this.lease = undefined; // what the store has taken is true
    this.idempotent?.end();
    this.#conclude('ended', last);
  }

  /**
   * Ends the turn with an error. Its session is given back, and its idempotency record written,
   * before the readers receive it.
   */
  async fail(error: unknown): Promise<void> {
    await this.failWith(failed(failureOf(error, this.#toolsRan)));
  }

  /** Ends the turn with a failure that is an event already. */
  async failWith(end: TurnFailed): Promise<void> {
    if (this.hasEnded) return;
    await this.idempotent?.fail(end);
    await this.lease?.abandon();
    this.#conclude('ended', [end]);
  }

  /** Asks the turn to end, with the error for its readers. Does nothing if it is being stored. */
  requestEnd(reason: TurnError): void {
    if (this.signal.aborted) return;
    if (this.#state === 'waiting') {
      this.#abort.abort(reason);
      this.settled();
      this.#drop('ended');
    } else if (this.#state === 'running') {
      this.#abort.abort(reason);
      this.log.removeLimit();
      this.#settling = this.#clock.after(SETTLE_TIMEOUT, () => this.#drop('overdue'));
    }
  }

  /** Ends the turn for a reader. Resolves when it has ended. */
  async cancel(): Promise<void> {
    this.requestEnd(new TurnError('turn_cancelled', 'The turn was cancelled by its caller.'));
    await this.ended;
  }

  /** Ends the turn without its phases: they have not begun, or do not settle. */
  #drop(state: 'ended' | 'overdue'): void {
    // An overdue turn may still be about to start a tool.
    const end = failed(failureOf(this.signal.reason, state === 'overdue'));
    void this.idempotent?.fail(end);
    void this.lease?.abandon();
    this.#conclude(state, [end]);
  }

  #conclude(state: 'ended' | 'overdue', last: Batch): void {
    const end = endOf(last);
    if (!end || this.hasEnded) return;
    this.#state = state;
    this.#terminal = end;
    this.#settling?.cancel();
    this.#absence?.cancel();
    this.recorder?.end(end);
    for (let release = this.#deferred.pop(); release; release = this.#deferred.pop()) release();
    this.log.write(last);
    this.log.close();
    this.#ended?.resolve(end);
  }

  onReaders(): void {
    this.#absence?.cancel();
    if (this.log.readers > 0 || this.hasEnded) return;
    const patience = this.#patience;
    if (patience === 0) this.requestEnd(callerDisconnected());
    else if (patience < Number.POSITIVE_INFINITY)
      this.#absence = this.#clock.after(patience, () => this.requestEnd(notResumed()));
  }

  /** What a reader receives instead of more of a turn whose lease is lost. */
  get lost(): Batch | undefined {
    if (!this.lease || this.lease.isHeld) return undefined;
    const error = leaseLost();
    this.requestEnd(error);
    return [this.#failure(error)];
  }

  shortage(account: Account): Batch {
    return [this.#failure(account.shortage())];
  }

  #connect(reader: TurnReader, signal: AbortSignal): TurnEvents {
    this.log.addReader(reader);
    const onAbort = () => this.#onDisconnect(reader, signal.reason);
    if (signal.aborted) onAbort();
    else {
      signal.addEventListener('abort', onAbort, { once: true });
      this.defer(() => signal.removeEventListener('abort', onAbort));
    }
    return reader;
  }

  /** The caller of a reader has disconnected, or the server ends its request. */
  #onDisconnect(reader: TurnReader, reason: unknown): void {
    if (reason instanceof TurnError) this.requestEnd(reason);
    // The end of the turn says how it ended.
    else if (this.log.readers === 1 && this.#patience === 0) this.requestEnd(callerDisconnected());
    else {
      reader.endWith([this.#failure(callerDisconnected())]);
      this.onReaders();
    }
  }

  #failure(error: TurnError): TurnFailed {
    return failed(failureOf(error, this.#toolsRan));
  }
}

/** The id of a turn whose caller knows it by an id of its own (`TurnRequest.id`). */
export function turnIdOf(id: string): string {
  return `turn_${id}`;
}

function notResumed(): TurnError {
  return new TurnError('turn_cancelled', 'The turn was cancelled: its reader did not come back in time.');
}

function callerDisconnected(): TurnError {
  return new TurnError('abandoned', 'The caller disconnected before the agent finished.');
}
