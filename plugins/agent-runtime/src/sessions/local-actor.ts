import type { Clock } from '@plugboard/kernel';
import type { Timer, TurnError } from '@plugboard/kernel/contracts';
import type { TurnTask } from '../engine/turn/turn-task.js';
import type { SessionHistory } from './conversation/session-history.js';
import { BUSY, isChild, onBusy, QUEUE_TIMEOUT, SessionActor, sessionBusy } from './session-actor.js';
import { turnInterrupted } from './store/lease-ended.js';

export interface ActorOptions {
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

/** A session of this server alone: its line is a queue in memory. */
export class LocalActor extends SessionActor {
  readonly #options: ActorOptions;
  readonly #queue: WaitingTurn[] = [];
  #running: TurnTask | undefined;
  /** The number of pieces of work between turns. Turns wait for them. */
  #exclusiveWork = 0;
  /** Resolves after the last of them. */
  #workDone: Promise<void> = Promise.resolve();

  constructor(history: SessionHistory, options: ActorOptions) {
    super(history, options.clock.monotonic());
    this.#options = options;
  }

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

  submit(turn: TurnTask): void {
    const refusal = this.#refusal(turn);
    if (refusal) {
      turn.requestEnd(refusal);
      return;
    }
    if (onBusy(turn) === 'interrupt') void this.endTurns(turnInterrupted());
    const late = () => turn.requestEnd(sessionBusy(BUSY.late));
    const waits = this.isBusy && !isChild(turn);
    this.#queue.push({ turn, timer: waits ? this.#options.clock.after(QUEUE_TIMEOUT, late) : undefined });
    turn.defer(() => this.#onEnd(turn));
    this.#startNext();
  }

  async endTurns(reason: TurnError): Promise<void> {
    this.endWaiting(reason);
    this.#running?.requestEnd(reason);
    await this.#running?.ended;
  }

  endWaiting(reason: TurnError): void {
    for (const { turn, timer } of this.#queue.splice(0)) {
      timer?.cancel();
      turn.requestEnd(reason);
    }
  }

  async whileIdle<T>(work: (history: SessionHistory, turnId: undefined) => Promise<T>): Promise<T> {
    if (this.isBusy) throw sessionBusy(BUSY.turn);
    return this.whenFree(work);
  }

  whenFree<T>(work: (history: SessionHistory, turnId: undefined) => Promise<T>): Promise<T> {
    return this.#exclusively(() => work(this.history, undefined));
  }

  endTurnsThen<T>(reason: TurnError, work: () => Promise<T>): Promise<T> {
    void this.endTurns(reason);
    return this.#exclusively(work);
  }

  /** Why a turn is refused, if it is. */
  #refusal(turn: TurnTask): TurnError | undefined {
    const mode = onBusy(turn);
    if (mode === 'reject' && this.isBusy) return sessionBusy(BUSY.rejected);
    // An interrupting turn always fits: it ends all others.
    if (mode !== 'interrupt' && !isChild(turn) && this.#isOccupied && this.#queue.length >= this.#options.queueLimit())
      return sessionBusy(BUSY.full);
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
