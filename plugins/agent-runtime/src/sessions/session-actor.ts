import type { Clock } from '@plugboard/kernel';
import type { Account, BusyMode, Timer, TurnEvents } from '@plugboard/kernel/contracts';
import { TurnError } from '@plugboard/kernel/contracts';
import type { TurnTask } from '../engine/turn/turn-task.js';
import type { SessionHistory } from './conversation/session-history.js';

/** How long a turn waits for the earlier ones of its session, in milliseconds. */
const QUEUE_TIMEOUT = 60_000;

interface SessionActorOptions {
  readonly clock: Clock;
  /** Runs the phases of a turn. */
  run(turn: TurnTask): Promise<void>;
  /** Returns the maximum number of waiting turns. */
  queueLimit(): number;
  /** Called when a turn failed with an unexpected error, before the next one starts. */
  onCrash(): void;
}

interface WaitingTurn {
  readonly turn: TurnTask;
  /** Limits the time in the queue. Absent for a turn that starts at once. */
  readonly timer: Timer | undefined;
}

/**
 * One session in use. Turns wait in its queue and run one at a time. How a turn ends is its own
 * matter (`TurnTask`). The cached conversation belongs to the actor and is discarded with it.
 */
export class SessionActor {
  readonly history: SessionHistory;
  /** When it was last used, on the monotonic clock. */
  usedAt: number;
  /** When it was last moved to the end of the order of use. */
  orderedAt: number;
  readonly #options: SessionActorOptions;
  readonly #queue: WaitingTurn[] = [];
  #running: TurnTask | undefined;
  /** The number of pieces of work between turns. Turns wait for them. */
  #exclusiveWork = 0;
  /** Resolves after the last of them. */
  #workDone: Promise<void> = Promise.resolve();

  constructor(history: SessionHistory, options: SessionActorOptions) {
    this.history = history;
    this.#options = options;
    this.usedAt = options.clock.monotonic();
    this.orderedAt = this.usedAt;
  }

  /** The running turn, and those that wait, in the order in which they run. */
  get turns(): readonly TurnTask[] {
    return [...(this.#running ? [this.#running] : []), ...this.#queue.map(({ turn }) => turn)];
  }

  get isBusy(): boolean {
    return this.#isOccupied || this.#queue.length > 0;
  }

  /** Whether a new turn has to wait. */
  get #isOccupied(): boolean {
    return this.#running !== undefined || this.#exclusiveWork > 0;
  }

  /**
   * Joins the turn of an equal request that waits or runs.
   * @param account in which the joining reader reserves what it reads.
   * @returns undefined if there is none.
   */
  join(fingerprint: string, signal: AbortSignal, account: Account): TurnEvents | undefined {
    const found = this.turns.find((turn) => turn.fingerprint === fingerprint && !turn.signal.aborted);
    return found?.join(signal, account);
  }

  /** Queues a turn, or ends it at once with the reason why it is refused. */
  submit(turn: TurnTask): void {
    const refusal = this.#refusal(turn);
    if (refusal) {
      turn.requestEnd(refusal);
      return;
    }
    if (onBusy(turn) === 'interrupt')
      this.endTurns(new TurnError('turn_interrupted', 'The turn was interrupted by a newer request to its session.'));
    const late = () => turn.requestEnd(sessionBusy('The session was busy with earlier turns for too long'));
    const waits = this.isBusy && !isChild(turn);
    this.#queue.push({ turn, timer: waits ? this.#options.clock.after(QUEUE_TIMEOUT, late) : undefined });
    turn.defer(() => this.#onEnd(turn));
    this.#startNext();
  }

  /** Ends all turns. The waiting ones end first, so that none of them starts. */
  endTurns(reason: TurnError): void {
    this.endWaiting(reason);
    this.#running?.requestEnd(reason);
  }

  endWaiting(reason: TurnError): void {
    for (const { turn, timer } of this.#queue.splice(0)) {
      timer?.cancel();
      turn.requestEnd(reason);
    }
  }

  async idle(): Promise<void> {
    await this.#running?.ended;
  }

  /**
   * Runs work that must not overlap with a turn. New turns wait for it.
   * @throws TurnError `session_busy` if the session has turns; any error of the work.
   */
  async whileIdle<T>(work: (history: SessionHistory) => Promise<T>): Promise<T> {
    if (this.isBusy) throw sessionBusy('The session is busy with a turn');
    return this.#exclusively(() => work(this.history));
  }

  /**
   * Ends all turns and then runs the work. New turns wait for it.
   * @throws any error of the work.
   */
  endTurnsThen<T>(reason: TurnError, work: () => Promise<T>): Promise<T> {
    this.endTurns(reason);
    return this.#exclusively(work);
  }

  /** Why a turn is refused, if it is. */
  #refusal(turn: TurnTask): TurnError | undefined {
    const mode = onBusy(turn);
    if (mode === 'reject' && this.isBusy) return sessionBusy('The session is busy with another turn');
    // An interrupting turn always fits: it ends all others.
    if (mode !== 'interrupt' && !isChild(turn) && this.#isOccupied && this.#queue.length >= this.#options.queueLimit())
      return sessionBusy('The session is busy, and its queue is full');
    return undefined;
  }

  #startNext(): void {
    if (this.#isOccupied) return;
    const next = this.#queue.shift();
    if (!next) return;
    next.timer?.cancel();
    const { turn } = next;
    this.#running = turn;
    turn.start(() => this.#options.run(turn));
  }

  #onEnd(turn: TurnTask): void {
    if (this.#running === turn) {
      this.#running = undefined;
      if (turn.terminal?.type === 'failed' && turn.terminal.failure.code === 'crashed') this.#options.onCrash();
    } else {
      const index = this.#queue.findIndex((waiting) => waiting.turn === turn);
      if (index < 0) return;
      this.#queue.splice(index, 1)[0]?.timer?.cancel();
    }
    this.#startNext();
  }

  async #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = Promise.all([this.#running?.ended, this.#workDone]).then(work);
    this.#exclusiveWork++;
    const drop = () => {}; // a promise keeps its value: a whole conversation, perhaps
    this.#workDone = done.then(drop, drop);
    try {
      return await done;
    } finally {
      this.#exclusiveWork--;
      this.#startNext();
    }
  }
}

function sessionBusy(what: string): TurnError {
  return new TurnError('session_busy', `${what}; try again in a moment.`, { retryAfter: 1 });
}

/** Whether a tool call started the turn, which has its own limits of time and number. */
function isChild({ request }: TurnTask): boolean {
  return request.parent !== undefined;
}

function onBusy({ request: { session, target } }: TurnTask): BusyMode {
  return session?.busy ?? target.onBusy;
}
