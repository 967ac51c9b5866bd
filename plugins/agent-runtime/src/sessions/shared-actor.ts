import type { IdSource } from '@plugboard/kernel';
import { type InterruptedTurn, sessionTitle, type TurnError } from '@plugboard/kernel/contracts';
import { type TurnTask, turnIdOf } from '../engine/turn/turn-task.js';
import type { SessionHistory } from './conversation/session-history.js';
import type { ActorOptions } from './local-actor.js';
import { BUSY, isChild, onBusy, QUEUE_TIMEOUT, SessionActor, sessionBusy } from './session-actor.js';
import type { HeldLease } from './shared/held-lease.js';
import type { Arrived, SessionLine } from './shared/session-line.js';
import { endedLease } from './store/lease-ended.js';

interface SharedActorOptions extends ActorOptions {
  readonly ids: IdSource;
  readonly line: SessionLine;
  /** Handles a turn of a dead server, before the next one of its session. Never rejects. */
  recover(turn: InterruptedTurn): Promise<void>;
  /** Offers what a turn sends to other servers, until it has ended. */
  offer(turn: TurnTask): void;
  /** The phases of a turn that is equal to one of another server; undefined if that has ended. */
  equalTurn(turn: TurnTask, turnId: string): Promise<(() => Promise<void>) | undefined>;
}

/** More than any line has. */
const MAX_AHEAD = 1_000_000;

/** For what no caller can end. */
const { signal: NEVER } = new AbortController();

/**
 * A session that other servers serve too. Its line is in the store: a turn gets its place when it
 * arrives, and runs when it gets the lease of the session.
 */
export class SharedActor extends SessionActor {
  readonly #options: SharedActorOptions;
  /** Those of this server, in the order of their arrival. */
  readonly #turns: TurnTask[] = [];
  #exclusiveWork = 0;

  constructor(history: SessionHistory, options: SharedActorOptions) {
    super(history, options.clock.monotonic());
    this.#options = options;
  }

  get turns(): readonly TurnTask[] {
    return this.#turns;
  }

  get isBusy(): boolean {
    return this.#turns.length > 0 || this.#exclusiveWork > 0;
  }

  submit(turn: TurnTask): void {
    this.#turns.push(turn);
    turn.defer(() => this.#onEnd(turn));
    this.#options.offer(turn);
    void this.#admit(turn);
  }

  endWaiting(reason: TurnError): void {
    for (const turn of this.#turns.slice()) if (turn.state === 'waiting') turn.requestEnd(reason);
  }

  async endTurns(reason: TurnError): Promise<void> {
    this.endWaiting(reason);
    for (const turn of this.#turns) turn.requestEnd(reason);
    await this.#options.line.endTurns('cancelled', NEVER);
  }

  whileIdle<T>(work: (history: SessionHistory, turnId: string) => Promise<T>): Promise<T> {
    return this.#behind(0, work);
  }

  whenFree<T>(work: (history: SessionHistory, turnId: string) => Promise<T>): Promise<T> {
    return this.#behind(MAX_AHEAD, work);
  }

  async endTurnsThen<T>(reason: TurnError, work: () => Promise<T>): Promise<T> {
    for (const turn of this.#turns.slice()) turn.requestEnd(reason);
    const turnId = this.#newTurnId();
    return this.#exclusively(await this.#options.line.takeOver({ turnId }, 'deleted', NEVER), work);
  }

  /** Waits in line, and starts the turn when it is its time. Never rejects. */
  async #admit(turn: TurnTask): Promise<void> {
    const { clock } = this.#options;
    const end = () => turn.requestEnd(sessionBusy(BUSY.late));
    const late = isChild(turn) ? undefined : clock.after(QUEUE_TIMEOUT, end);
    try {
      while (turn.state === 'waiting') await this.#arrive(turn);
    } catch (error) {
      turn.requestEnd(error as TurnError); // of the storage
    } finally {
      late?.cancel();
    }
  }

  /** Starts or ends the turn when it is its time. It still waits if an equal one has ended. */
  async #arrive(turn: TurnTask): Promise<void> {
    const arrived = await this.#acquire(turn);
    if (arrived.kind === 'lease') await this.#start(turn, arrived.lease);
    else if (arrived.kind === 'busy') turn.requestEnd(sessionBusy(onBusy(turn) === 'reject' ? BUSY.rejected : BUSY.full));
    else {
      const phases = await this.#options.equalTurn(turn, arrived.turnId);
      if (phases) turn.start(phases);
    }
  }

  #acquire(turn: TurnTask): Promise<Arrived> {
    const { line, queueLimit } = this.#options;
    const { turnId, fingerprint, signal, request } = turn;
    const title = isChild(turn) ? undefined : sessionTitle(request.messages); // lists show what has one
    const arrival = { turnId, fingerprint, user: request.session?.user, title };
    const mode = onBusy(turn);
    if (mode === 'interrupt') return line.takeOver(arrival, 'interrupted', signal);
    const maxAhead = isChild(turn) ? MAX_AHEAD : mode === 'reject' ? 0 : queueLimit();
    return line.acquire({ ...arrival, maxAhead }, signal);
  }

  async #start(turn: TurnTask, lease: HeldLease): Promise<void> {
    if (lease.interrupted) await this.#options.recover(lease.interrupted);
    if (turn.hasEnded) return lease.abandon();
    turn.lease = lease;
    const onEnd = () => turn.requestEnd(endedLease(lease.signal.reason));
    if (lease.signal.aborted) onEnd();
    lease.signal.addEventListener('abort', onEnd, { once: true });
    turn.defer(() => lease.signal.removeEventListener('abort', onEnd));
    turn.start(() => this.#options.run(turn));
  }

  #onEnd(turn: TurnTask): void {
    this.#turns.splice(this.#turns.indexOf(turn), 1);
    if (turn.terminal?.type === 'failed' && turn.terminal.failure.code === 'crashed') this.#options.onCrash();
  }

  async #behind<T>(maxAhead: number, work: (history: SessionHistory, turnId: string) => Promise<T>): Promise<T> {
    const turnId = this.#newTurnId();
    return this.#exclusively(await this.#options.line.acquire({ turnId, maxAhead }, NEVER), () => work(this.history, turnId));
  }

  /** Runs work between turns, which need not store anything. */
  async #exclusively<T>(arrived: Arrived, work: () => Promise<T>): Promise<T> {
    if (arrived.kind !== 'lease') throw sessionBusy(BUSY.turn);
    const { lease } = arrived;
    this.#exclusiveWork++;
    try {
      if (lease.interrupted) await this.#options.recover(lease.interrupted);
      return await work();
    } finally {
      await lease.abandon();
      this.#exclusiveWork--;
    }
  }

  #newTurnId(): string {
    return turnIdOf(this.#options.ids.base62(20));
  }
}
