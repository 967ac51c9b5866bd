import type { AgentEvent, Clock } from '@plugboard/kernel';
import type { BusyMode, Timer } from '@plugboard/kernel/contracts';
import { type AgentEvents, failed, failureOf, TurnError, type TurnFailed } from '@plugboard/kernel/contracts';
import { Broadcast, callerDisconnected } from '../streams/broadcast.js';
import { SETTLE_TIMEOUT } from '../streams/settle-timeout.js';
import type { TurnSink } from '../streams/turn-sink.js';
import type { SessionHistory } from './session-history.js';

/** How long a turn waits for the earlier ones of its session, in milliseconds. */
const QUEUE_TIMEOUT = 60_000;

/** A turn to run in a session. */
export interface SessionTurn {
  /** Equal for a retry of the same request, which joins the turn instead of running another. */
  readonly fingerprint: string | undefined;
  /** What happens if the session is busy. */
  readonly onBusy: BusyMode;
  /** Whether the turn continues when its last reader has left. */
  readonly outlivesReaders: boolean;
  /**
   * Drives the turn to its end and writes its events to the sink. Never rejects.
   * @param history the session's history. No other turn uses it meanwhile.
   */
  run(history: SessionHistory, abort: AbortController, sink: TurnSink): Promise<AgentEvent | undefined>;
  /**
   * Called if the turn ends without the result of `run`: it was refused, ended in the queue, or
   * is overdue.
   */
  onDropped(end: TurnFailed): void;
}

interface Job {
  readonly turn: SessionTurn;
  readonly broadcast: Broadcast;
  readonly abort: AbortController;
  /** The actor that has it in its queue. */
  actor: SessionActor;
  /** Limits the time in the queue. */
  queueTimer?: Timer;
}

/**
 * One session in use. Turns wait in its queue and run one at a time. The actor drives the turns
 * itself and readers only read, so a slow reader cannot block the session. The cached conversation
 * belongs to the actor and is discarded with it.
 */
export class SessionActor {
  readonly #history: SessionHistory;
  readonly #limit: () => number;
  readonly #clock: Clock;
  readonly #onCrash: () => void;
  readonly #waiting: Job[] = [];
  #running: Job | undefined;
  /** Resolves when the running turn has ended or is overdue. */
  #settled: Promise<void> = Promise.resolve();
  /** The number of pieces of work between turns. Turns wait for them. */
  #holds = 0;
  /** Resolves after the last of them. */
  #released: Promise<unknown> = Promise.resolve();
  #crashed = false;

  /**
   * @param limit the maximum number of waiting turns.
   * @param onCrash called when a turn failed with an unexpected error. The actor then starts no
   *   further turn.
   */
  constructor(history: SessionHistory, limit: () => number, clock: Clock, onCrash: () => void) {
    this.#history = history;
    this.#limit = limit;
    this.#clock = clock;
    this.#onCrash = onCrash;
  }

  get isBusy(): boolean {
    return this.#isOccupied || this.#waiting.length > 0;
  }

  /** Whether a new turn has to wait. */
  get #isOccupied(): boolean {
    return this.#running !== undefined || this.#holds > 0;
  }

  /**
   * Queues a turn. A retry of a queued or running turn joins that one instead.
   * @param signal aborts when the caller disconnects.
   * @returns the events of the turn for this caller.
   */
  submit(turn: SessionTurn, signal: AbortSignal): AgentEvents {
    const duplicate =
      turn.fingerprint === undefined
        ? undefined
        : this.#jobs().find((job) => job.turn.fingerprint === turn.fingerprint && !job.abort.signal.aborted);
    if (duplicate)
      return (
        this.#read(duplicate, signal) ??
        refusedTurn(turn, sessionBusy('The same request is being answered, and it is too late to join its answer'))
      );
    if (turn.onBusy === 'reject' && this.isBusy) return refusedTurn(turn, sessionBusy('The session is busy with another turn'));
    if (turn.onBusy === 'interrupt')
      this.#endAll(new TurnError('turn_interrupted', 'The turn was interrupted by a newer request to its session.'));
    // An interrupting turn always fits: it has just ended all others.
    if (turn.onBusy !== 'interrupt' && this.#isOccupied && this.#waiting.length >= this.#limit())
      return refusedTurn(turn, sessionBusy('The session is busy, and its queue is full'));

    const job: Job = {
      turn,
      actor: this,
      abort: new AbortController(),
      // Only a retry of the same request joins a turn that runs.
      broadcast: new Broadcast(turn.fingerprint !== undefined, () => {
        if (!turn.outlivesReaders) job.actor.#end(job, callerDisconnected());
      }),
    };
    this.#waiting.push(job);
    const events = this.#read(job, signal);
    if (this.#isOccupied)
      job.queueTimer = this.#clock.after(QUEUE_TIMEOUT, () =>
        job.actor.#end(job, sessionBusy('The session was busy with earlier turns for too long')),
      );
    else this.#next();
    return events ?? only(failed(failureOf(signal.reason instanceof TurnError ? signal.reason : callerDisconnected(), false)));
  }

  /**
   * Ends all turns. The waiting ones end first, so that none of them starts. Resolves when all have
   * settled.
   */
  async end(reason: TurnError): Promise<void> {
    this.#endAll(reason);
    await this.#settled;
  }

  /**
   * Runs work that must not overlap with a turn. New turns wait for it.
   * @throws TurnError `session_busy` if the session has turns; any error of the work.
   */
  whileIdle<T>(work: (history: SessionHistory) => Promise<T>): Promise<T> {
    if (this.isBusy) return Promise.reject(sessionBusy('The session is busy with a turn'));
    return this.#hold(() => work(this.#history));
  }

  /**
   * Ends all turns and then runs the work. New turns wait for it.
   * @throws any error of the work.
   */
  endTurnsThen<T>(reason: TurnError, work: () => Promise<T>): Promise<T> {
    this.#endAll(reason);
    return this.#hold(work);
  }

  /**
   * Moves the waiting turns to another actor. It starts them when the work of this actor between
   * turns is done.
   */
  handOver(successor: SessionActor): void {
    const jobs = this.#waiting.splice(0);
    for (const job of jobs) job.actor = successor;
    successor.#waiting.push(...jobs);
    void successor.#hold(() => this.#released);
  }

  /** Rejects the waiting turns. */
  refuseWaiting(reason: TurnError): void {
    for (const job of [...this.#waiting]) this.#end(job, reason);
  }

  #jobs(): readonly Job[] {
    return this.#running ? [this.#running, ...this.#waiting] : this.#waiting;
  }

  #read(job: Job, signal: AbortSignal): AgentEvents | undefined {
    // A stopping server aborts the caller's signal with a TurnError. That ends the turn for all
    // readers.
    const stopped = () => signal.reason instanceof TurnError && job.actor.#end(job, signal.reason);
    if (signal.aborted) stopped();
    else signal.addEventListener('abort', stopped, { once: true });
    return job.broadcast.join(signal);
  }

  async #hold<T>(work: () => Promise<T>): Promise<T> {
    const earlier = Promise.all([this.#settled, this.#released]);
    const done = earlier.then(work);
    this.#holds++;
    this.#released = done.catch(() => {});
    try {
      return await done;
    } finally {
      this.#holds--;
      this.#next();
    }
  }

  #next(): void {
    const [job] = this.#waiting;
    if (!job || this.#isOccupied || this.#crashed) return;
    this.#waiting.shift();
    job.queueTimer?.cancel();
    this.#running = job;
    this.#settled = this.#drive(job);
  }

  /** Runs a turn, and does not wait for it if it is overdue: aborted, and not settled in time. */
  async #drive(job: Job): Promise<void> {
    const { signal } = job.abort;
    const sink = { closed: false, write: (batch: readonly AgentEvent[]) => job.broadcast.write(batch) };
    const { promise, resolve, reject } = Promise.withResolvers<AgentEvent | undefined | 'overdue'>();
    let timer: Timer | undefined;
    const onAbort = () => {
      job.broadcast.removeLimit();
      timer = this.#clock.after(SETTLE_TIMEOUT, () => resolve('overdue'));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    job.turn.run(this.#history, job.abort, sink).then(resolve, reject);
    const end = await promise;
    timer?.cancel();
    if (end === 'overdue') {
      sink.closed = true;
      const overdue = failed(failureOf(signal.reason, true));
      job.turn.onDropped(overdue);
      job.broadcast.write([overdue]);
    }
    job.broadcast.end();
    this.#running = undefined;
    if (end !== 'overdue' && end?.type === 'failed' && end.failure.code === 'crashed') {
      this.#crashed = true;
      this.#onCrash();
    } else this.#next();
  }

  #endAll(reason: TurnError): void {
    for (const job of [...this.#waiting]) this.#end(job, reason);
    if (this.#running) this.#end(this.#running, reason);
  }

  /** Aborts a turn. A waiting turn ends at once; a running one ends when it settles. */
  #end(job: Job, reason: TurnError): void {
    job.abort.abort(reason);
    const index = this.#waiting.indexOf(job);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    job.queueTimer?.cancel();
    const end = failed(failureOf(reason, false));
    job.turn.onDropped(end);
    job.broadcast.write([end]);
    job.broadcast.end();
  }
}

function sessionBusy(what: string): TurnError {
  return new TurnError('session_busy', `${what}; try again in a moment.`, { retryAfter: 1 });
}

/** Refuses a turn before it begins. */
export function refusedTurn(turn: SessionTurn, reason: TurnError): AgentEvents {
  const end = failed(failureOf(reason, false));
  turn.onDropped(end);
  return only(end);
}

async function* only(end: TurnFailed): AsyncGenerator<readonly AgentEvent[]> {
  yield [end];
}
