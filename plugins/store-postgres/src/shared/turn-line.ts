import { conversationId, type InterruptedTurn, LeaseEnded, type SessionId, type SharedStore } from '@plugboard/kernel/contracts';
import { BadRow } from '@plugboard/store-kit';
import type { Hints } from '../database/hints.js';
import type { Replica } from '../database/replica.js';
import { noLease } from '../errors/store-error.js';
import type { EndReason, TurnArrival } from '../tables/line-table.js';
import type { StoreTables } from '../tables/store-tables.js';
import { interruptedTurn } from '../tables/turn-table.js';
import type { CachedHistories } from './cached-histories.js';
import { HeldTurn } from './held-turn.js';
import { FIRST_PAUSE, longer } from './pauses.js';

type AcquireResult = Awaited<ReturnType<SharedStore['acquire']>>;

interface TurnLineOptions {
  readonly tables: Pick<StoreTables, 'line' | 'sessions'>;
  readonly replica: Replica;
  readonly hints: Hints;
  readonly cached: CachedHistories;
  /** Tells other servers, if they listen. */
  readonly notify: (payload: string) => void;
  /** Logs a row that cannot be read. */
  readonly onBadRow: (row: BadRow) => void;
}

/**
 * The turns of this server in the lines of their sessions.
 *
 * 1. A turn that finds its line empty has the lease with the statement that puts it there.
 * 2. Another one is put last, and looks again at each hint, or after a pause.
 * 3. A turn that ends gives a hint if others wait for that.
 * 4. With each renewal of the server's lease, the turns are found that other servers ask to end,
 *    and rows that could not be removed are removed.
 */
export class TurnLine {
  readonly #options: TurnLineOptions;
  /** By turn id. */
  readonly #held = new Map<string, HeldTurn>();
  /** Turns that have ended, and whose rows are still to be removed. */
  readonly #leaving = new Map<string, SessionId>();

  constructor(options: TurnLineOptions) {
    this.#options = options;
  }

  /** Whether a turn has a row by `acquire`. */
  has(turnId: string): boolean {
    return this.#held.has(turnId);
  }

  /** @throws LeaseEnded, StoreError `no_lease`, or the reason of the signal */
  async acquire(id: SessionId, turn: TurnArrival, signal: AbortSignal): Promise<AcquireResult> {
    signal.throwIfAborted();
    const { tables, replica } = this.#options;
    if (!replica.isAlive) throw noLease();
    const held = new HeldTurn(replica);
    this.#held.set(turn.turnId, held);
    try {
      const version = await tables.line.arriveFirst(id, turn, held.row);
      const result = version === undefined ? await this.#wait(id, turn, held, signal) : this.#leased(id, held, version);
      held.signal.throwIfAborted();
      signal.throwIfAborted();
      if (result.kind !== 'lease') this.#held.delete(turn.turnId);
      return result;
    } catch (error) {
      this.#leave(id, turn.turnId);
      throw error;
    }
  }

  /** Ends turns on all servers. Resolves when they have left the line. */
  async endTurns(id: SessionId, why: EndReason, signal: AbortSignal, turnId?: string): Promise<void> {
    const { tables, replica, hints, notify } = this.#options;
    const hint = hints.expect(conversationId(id));
    try {
      const rows = await tables.line.ask(id, why, turnId);
      for (const row of rows) this.#held.get(row.turnId)?.end(row.why);
      const others = new Set(rows.map((row) => row.replica).filter((other) => other !== replica.id));
      for (const other of others) notify(`end ${other}`);
      for (let pause = FIRST_PAUSE; await tables.line.areLeft(rows); pause = longer(pause)) await hint.wait(pause, signal);
    } finally {
      hint.close();
    }
  }

  /**
   * Runs the commit of a turn, which removes its row. One that fails leaves the line as well.
   * @param commit returns whether others wait for the end of the turn
   */
  async ending(id: SessionId, turnId: string, commit: () => Promise<boolean>): Promise<void> {
    try {
      this.#left(id, turnId, await commit());
    } catch (error) {
      if (this.has(turnId)) this.#leave(id, turnId);
      throw error;
    }
  }

  /** Removes a turn. Where that fails, it is tried again with the next renewal. */
  async leave(id: SessionId, turnId: string): Promise<void> {
    this.#held.delete(turnId);
    this.#leaving.set(turnId, id);
    this.#left(id, turnId, await this.#options.tables.line.leave(turnId));
  }

  /** Ends the turns of this server that others have asked to end, and removes those that ended. */
  async check(): Promise<void> {
    const { tables, replica } = this.#options;
    for (const { turnId, why } of await tables.line.asked(replica.id)) this.#held.get(turnId)?.end(why);
    for (const [turnId, id] of this.#leaving) await this.leave(id, turnId);
  }

  /** Ends all turns of this server: another one may have their sessions. */
  endAll(): void {
    for (const held of this.#held.values()) held.end('expired');
  }

  /** The row of a turn is gone. */
  #left(id: SessionId, turnId: string, isAwaited: boolean): void {
    this.#held.delete(turnId);
    this.#leaving.delete(turnId);
    if (!isAwaited) return;
    const conversation = conversationId(id);
    this.#options.hints.wake(conversation);
    this.#options.notify(`line ${conversation}`);
  }

  /** For a turn that came to an end here, whether or not the database can be reached. */
  #leave(id: SessionId, turnId: string): void {
    this.leave(id, turnId).catch(() => {}); // tried again by `check`
  }

  async #wait(id: SessionId, turn: TurnArrival, held: HeldTurn, signal: AbortSignal): Promise<AcquireResult> {
    const { tables, hints } = this.#options;
    const hint = hints.expect(conversationId(id));
    const either = AbortSignal.any([signal, held.signal]);
    try {
      const { isInLine, isAlive, same } = await tables.line.arriveLast(id, turn, held.row);
      if (!isAlive) throw new LeaseEnded('expired');
      if (!isInLine) return same === undefined ? { kind: 'busy' } : { kind: 'same', turnId: same };
      for (let pause = FIRST_PAUSE; ; pause = longer(pause)) {
        const { waits, isTaken, interrupted } = await tables.line.take(id, turn.turnId, held.row);
        if (!waits) throw new LeaseEnded('expired');
        // A turn that another server has just stored is seen by the next statement.
        if (isTaken)
          return this.#leased(
            id,
            held,
            await tables.sessions.version(id),
            this.#readable(interrupted && interruptedTurn(interrupted)),
          );
        await hint.wait(pause, either);
      }
    } finally {
      hint.close();
    }
  }

  #readable(turn: InterruptedTurn | BadRow | undefined): InterruptedTurn | undefined {
    if (!(turn instanceof BadRow)) return turn;
    this.#options.onBadRow(turn);
    return undefined;
  }

  #leased(id: SessionId, held: HeldTurn, version: number, interrupted?: InterruptedTurn): AcquireResult {
    held.version = this.#options.cached.comparable(id, version);
    held.interrupted = interrupted;
    return { kind: 'lease', lease: held };
  }
}
