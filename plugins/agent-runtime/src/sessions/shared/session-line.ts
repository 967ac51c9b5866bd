import type { SessionId, SharedStore } from '@plugboard/kernel/contracts';
import type { SessionStorage } from '../store/session-storage.js';
import { HeldLease } from './held-lease.js';

export type TurnArrival = Parameters<SharedStore['acquire']>[1];
type Why = Parameters<SharedStore['endTurns']>[1];

/** What came of an arrival in the line. */
export type Arrived =
  | { readonly kind: 'lease'; readonly lease: HeldLease }
  | { readonly kind: 'busy' }
  | { readonly kind: 'same'; readonly turnId: string };

/** The line of one session, over all servers (PG-14). All methods throw a `TurnError`. */
export class SessionLine {
  readonly #id: SessionId;
  readonly #storage: SessionStorage;
  readonly #shared: SharedStore;

  constructor(id: SessionId, storage: SessionStorage, shared: SharedStore) {
    this.#id = id;
    this.#storage = storage;
    this.#shared = shared;
  }

  /** Waits until nothing earlier is in line, without a limit of its own. */
  async acquire(turn: TurnArrival, signal: AbortSignal): Promise<Arrived> {
    const id = this.#id;
    const acquired = await this.#storage.wait(() => this.#shared.acquire(id, turn, signal), 'acquire', id);
    return acquired.kind === 'lease'
      ? { kind: 'lease', lease: new HeldLease(acquired.lease, () => this.abandon(turn.turnId)) }
      : acquired;
  }

  /** Ends what is in line, until the session is this turn's. */
  async takeOver(turn: Omit<TurnArrival, 'maxAhead'>, why: Why, signal: AbortSignal): Promise<Arrived> {
    for (;;) {
      const arrived = await this.acquire({ ...turn, maxAhead: 0 }, signal);
      if (arrived.kind !== 'busy') return arrived;
      await this.endTurns(why, signal);
    }
  }

  /**
   * Ends what is in line now, or one turn of it. Resolves when it has left the line, at the latest
   * when the lease of its server has ended (PG-18).
   */
  async endTurns(why: Why, signal: AbortSignal, turnId?: string): Promise<void> {
    await this.#storage.wait(() => this.#shared.endTurns(this.#id, why, signal, turnId), 'endTurns', this.#id);
  }

  abandon(turnId: string): Promise<void> {
    return this.#storage.call((store) => store.abandon(this.#id, turnId), 'abandon', this.#id);
  }
}
