import type { AgentEvent, Clock } from '@plugboard/kernel';
import type { BusyMode, Timer } from '@plugboard/kernel/contracts';
import { type AgentEvents, failed, failureOf, TurnError, type TurnFailed } from '@plugboard/kernel/contracts';
import { abandoned, Broadcast } from '../streams/broadcast.js';
import { SETTLE_TIMEOUT } from '../streams/settle-timeout.js';
import type { TurnSink } from '../streams/turn-sink.js';
import type { SessionHistory } from './session-history.js';

/** How long a turn waits for the earlier ones of its session, in milliseconds. */
const QUEUE_TIMEOUT = 60_000;
/** A turn that is to be run in a session. */
export interface SessionTurn {
  /** Equal for a retry of the same request, which joins the turn instead of running another. */
  readonly fingerprint: string | undefined;
  /** What happens where the session is busy. */
  readonly busy: BusyMode;
  /** Whether it goes on when nobody reads it any more. */
  readonly outlivesReaders: boolean;
  /**
   * Drives the turn to its end and writes its events to the sink. Never rejects.
   * @param history the session's history. No other turn uses it meanwhile.
   */
  run(history: SessionHistory, abort: AbortController, sink: TurnSink): Promise<AgentEvent | undefined>;
  /**
   * Told of an end that `run` does not tell: the turn was rejected, ended while it waited, or was
   * left behind.
   */
  onGivenUp(end: TurnFailed): void;
}

interface Job {
  readonly turn: SessionTurn;
  readonly broadcast: Broadcast;
  readonly abort: AbortController;
  /** Whose mailbox it is in. */
  actor: SessionActor;
  /** Ends its wait. */
  queueTimer?: Timer;
}

/**
 * One session while it is in use: a mailbox, and one turn at a time. It drives its turns itself, so
 * that no reader can hold the session up; readers only read. What it knows of the conversation is
 * its own, and goes with it.
 */
export class SessionActor {
  readonly #history: SessionHistory;
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #onCrash: () => void;
  readonly #waiting = new Set<Job>();
  #running: Job | undefined;
  /** Resolved when the turn that runs has ended, or was left behind. */
  #settled: Promise<void> = Promise.resolve();
  /**
   * How much is to be done between turns, and when the last of it is done: no turn begins before.
   */
  #holds = 0;
  #released: Promise<unknown> = Promise.resolve();
  #crashed = false;

  /**
   * @param limit how many turns may wait.
   * @param onCrash called when a turn broke in a way that no turn should. The actor takes no
   *   further turn then.
   */
  constructor(history: SessionHistory, limit: number, clock: Clock, onCrash: () => void) {
    this.#history = history;
    this.#limit = limit;
    this.#clock = clock;
    this.#onCrash = onCrash;
  }

  get busy(): boolean {
    return this.#occupied || this.#waiting.size > 0;
  }

  /** Whether a turn that came now would have to wait. */
  get #occupied(): boolean {
    return this.#running !== undefined || this.#holds > 0;
  }

  /**
   * Takes a turn on, or lets a retry join the one that it repeats. What comes back is this caller's
   * reading of it.
   * @param signal the caller's.
   */
  submit(turn: SessionTurn, signal: AbortSignal): AgentEvents {
    const duplicate =
      turn.fingerprint === undefined
        ? undefined
        : this.#jobs().find((job) => job.turn.fingerprint === turn.fingerprint && !job.abort.signal.aborted);
    if (duplicate)
      return (
        this.#read(duplicate, signal) ?? rejected(turn, busy('The same request is being answered, and too far on to be joined'))
      );
    if (turn.busy === 'reject' && this.busy) return rejected(turn, busy('The session is busy with another turn'));
    if (turn.busy === 'interrupt')
      this.#endAll(new TurnError('turn_interrupted', 'The turn was interrupted by a newer request to its session.'));
    // One that interrupts always fits: it has just ended what runs and what waits.
    if (turn.busy !== 'interrupt' && this.#occupied && this.#waiting.size >= this.#limit)
      return rejected(turn, busy('The session is busy, and its queue is full'));

    const job: Job = {
      turn,
      actor: this,
      abort: new AbortController(),
      broadcast: new Broadcast(() => {
        if (!turn.outlivesReaders) job.actor.#end(job, abandoned());
      }),
    };
    this.#waiting.add(job);
    const events = this.#read(job, signal);
    if (this.#occupied)
      job.queueTimer = this.#clock.after(QUEUE_TIMEOUT, () =>
        job.actor.#end(job, busy('The session was busy with earlier turns for too long')),
      );
    else this.#next();
    return events ?? only(failed(failureOf(abandoned(), false)));
  }

  /**
   * Ends what waits, and then what runs, so that nothing moves up in between. Resolved when all has
   * settled.
   */
  async end(reason: TurnError): Promise<void> {
    this.#endAll(reason);
    await this.#settled;
  }

  /**
   * Does what must not happen beside a turn; turns that come meanwhile wait.
   * @throws TurnError `session_busy` where the session has turns already; what the work throws.
   */
  whileIdle<T>(work: (history: SessionHistory) => Promise<T>): Promise<T> {
    if (this.busy) return Promise.reject(busy('The session is busy with a turn'));
    return this.#hold(() => work(this.#history));
  }

  /**
   * Ends what waits and what runs, and does the work before any later turn begins.
   * @throws what the work throws.
   */
  clear<T>(reason: TurnError, work: () => Promise<T>): Promise<T> {
    this.#endAll(reason);
    return this.#hold(work);
  }

  /**
   * What waits goes to another actor, which begins when nothing is to be done here between turns
   * any more.
   */
  handOver(successor: SessionActor): void {
    for (const job of this.#waiting) {
      this.#waiting.delete(job);
      job.actor = successor;
      successor.#waiting.add(job);
    }
    void successor.#hold(() => this.#released);
  }

  /** What waits is rejected. */
  refuseWaiting(reason: TurnError): void {
    for (const job of this.#waiting) this.#end(job, reason);
  }

  #jobs(): Job[] {
    return this.#running ? [this.#running, ...this.#waiting] : [...this.#waiting];
  }

  #read(job: Job, signal: AbortSignal): AgentEvents | undefined {
    // A server that stops says so through the caller's signal: that ends the turn for all its
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
    if (!job || this.#occupied || this.#crashed) return;
    this.#waiting.delete(job);
    job.queueTimer?.cancel();
    this.#running = job;
    this.#settled = this.#drive(job);
  }

  /** Runs a turn. One that does not settle in time after it was aborted is abandoned. */
  async #drive(job: Job): Promise<void> {
    const { signal } = job.abort;
    const sink = { closed: false, write: (batch: readonly AgentEvent[]) => job.broadcast.write(batch) };
    const late = Promise.withResolvers<'late'>();
    let timer: Timer | undefined;
    const onAbort = () => {
      job.broadcast.unbound();
      timer = this.#clock.after(SETTLE_TIMEOUT, () => late.resolve('late'));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    const end = await Promise.race([job.turn.run(this.#history, job.abort, sink), late.promise]);
    timer?.cancel();
    if (end === 'late') {
      sink.closed = true;
      const abandonment = failed(failureOf(signal.reason, true));
      job.turn.onGivenUp(abandonment);
      job.broadcast.write([abandonment]);
    }
    job.broadcast.end();
    this.#running = undefined;
    if (end !== 'late' && end?.type === 'failed' && end.failure.code === 'crashed') {
      this.#crashed = true;
      this.#onCrash();
    } else this.#next();
  }

  #endAll(reason: TurnError): void {
    for (const job of this.#waiting) this.#end(job, reason);
    if (this.#running) this.#end(this.#running, reason);
  }

  /** One that waits is gone at once; one that runs is only, and settles. */
  #end(job: Job, reason: TurnError): void {
    job.abort.abort(reason);
    if (!this.#waiting.delete(job)) return;
    job.queueTimer?.cancel();
    const end = failed(failureOf(reason, false));
    job.turn.onGivenUp(end);
    job.broadcast.write([end]);
    job.broadcast.end();
  }
}

function busy(what: string): TurnError {
  return new TurnError('session_busy', `${what}; try again in a moment.`, { retryAfter: 1 });
}

/** A turn that is rejected before it begins. */
export function rejected(turn: SessionTurn, reason: TurnError): AgentEvents {
  const end = failed(failureOf(reason, false));
  turn.onGivenUp(end);
  return only(end);
}

async function* only(end: TurnFailed): AsyncGenerator<readonly AgentEvent[]> {
  yield [end];
}
