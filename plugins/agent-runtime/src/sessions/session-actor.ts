import type { Account, BusyMode, TurnEvents } from '@plugboard/kernel/contracts';
import { TurnError } from '@plugboard/kernel/contracts';
import type { TurnTask } from '../engine/turn/turn-task.js';
import type { SessionHistory } from './conversation/session-history.js';

/** How long a turn waits for the earlier ones of its session, in milliseconds. */
export const QUEUE_TIMEOUT = 60_000;

/**
 * One session in use. Turns wait in its line and run one at a time. How a turn ends is its own
 * matter (`TurnTask`). The cached conversation belongs to the actor and is discarded with it.
 *
 * The line is in the process (`LocalActor`), or in a store that several servers share
 * (`SharedActor`).
 */
export abstract class SessionActor {
  readonly history: SessionHistory;
  /** When it was last used, on the monotonic clock. */
  usedAt: number;
  /** When it was last moved to the end of the order of use. */
  orderedAt: number;

  /** @param now on the monotonic clock. */
  constructor(history: SessionHistory, now: number) {
    this.history = history;
    this.usedAt = now;
    this.orderedAt = now;
  }

  /** The turns of this server that run or wait, in the order in which they run. */
  abstract get turns(): readonly TurnTask[];

  /** Whether turns, or work between turns, of this server run or wait. */
  abstract get isBusy(): boolean;

  /** Queues a turn, or ends it with the reason why it is refused. */
  abstract submit(turn: TurnTask): void;

  /** Ends the waiting turns of this server. */
  abstract endWaiting(reason: TurnError): void;

  /**
   * Ends all turns. The waiting ones end first, so that none of them starts.
   * Resolves when they have ended.
   */
  abstract endTurns(reason: TurnError): Promise<void>;

  /**
   * Runs work that must not overlap with a turn. New turns wait for it.
   * @param work gets the id of the turn that it may commit, where the line has ids.
   * @throws TurnError `session_busy` if the session has turns; any error of the work.
   */
  abstract whileIdle<T>(work: (history: SessionHistory, turnId: string | undefined) => Promise<T>): Promise<T>;

  /** The same, but waits for the turns that came before. */
  abstract whenFree<T>(work: (history: SessionHistory, turnId: string | undefined) => Promise<T>): Promise<T>;

  /**
   * Ends all turns and then runs the work. New turns wait for it.
   * @throws any error of the work.
   */
  abstract endTurnsThen<T>(reason: TurnError, work: () => Promise<T>): Promise<T>;

  /**
   * Joins the turn of an equal request that waits or runs.
   * @param account in which the joining reader reserves what it reads.
   * @returns undefined if there is none.
   */
  join(fingerprint: string, signal: AbortSignal, account: Account): TurnEvents | undefined {
    const found = this.turns.find((turn) => turn.fingerprint === fingerprint && !turn.signal.aborted);
    return found?.join(signal, account);
  }
}

export function sessionBusy(what: string): TurnError {
  return new TurnError('session_busy', `${what}; try again in a moment.`, { retryAfter: 1 });
}

/** Whether a tool call started the turn, which has its own limits of time and number. */
export function isChild({ request }: TurnTask): boolean {
  return request.parent !== undefined;
}

export const BUSY = {
  turn: 'The session is busy with a turn',
  rejected: 'The session is busy with another turn',
  full: 'The session is busy, and its queue is full',
  late: 'The session was busy with earlier turns for too long',
} as const;

export function onBusy({ request: { session, target } }: TurnTask): BusyMode {
  return session?.busy ?? target.onBusy;
}
