import type { Clock, PluginContext } from '@plugboard/kernel';
import type { InterruptedTurn, Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { InterruptedTurns } from './interrupted-turns.js';
import { type BegunCall, begunCalls } from './pending/turn-journal.js';
import { SessionSupervisor } from './session-supervisor.js';
import { SessionStorage } from './store/session-storage.js';

/** Milliseconds between two looks for the turns of servers that died (PG-17). */
const RECOVER_EVERY = 5_000;

/**
 * Looks for turns that dead servers left: once at the start, before new ones begin, and again and
 * again where several servers share the store.
 */
export class TurnRecovery {
  readonly #clock: Clock;
  readonly #entry: string;
  readonly #storage: SessionStorage;
  readonly #sessions: SessionSupervisor;
  readonly #interrupted: InterruptedTurns;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(
    @inject(CONTEXT) { clock, entry }: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(SessionSupervisor) sessions: SessionSupervisor,
    @inject(InterruptedTurns) interrupted: InterruptedTurns,
  ) {
    this.#clock = clock;
    this.#entry = entry;
    this.#storage = storage;
    this.#sessions = sessions;
    this.#interrupted = interrupted;
  }

  /** @throws if the store fails. */
  async start(): Promise<void> {
    const { store } = this.#storage;
    const turns = await store.recover();
    const begun = new Map(turns.length === 0 && store.shared ? [] : await begunCalls(store, this.#entry));
    const handled = turns.map((turn) => this.#handle(turn, begun.get(turn.turnId) ?? []));
    if (store.shared) {
      this.#lookLater(); // what else has begun may be calls of other servers that run
      return;
    }
    await Promise.all(handled);
    for (const { turnId } of turns) begun.delete(turnId);
    // The server died again, after the turn was recovered and before its calls were kept.
    for (const [turnId, calls] of begun)
      for (const { session: id } of calls.slice(0, 1)) await this.#interrupted.keep({ id, turnId, input: [] }, calls);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #handle(turn: InterruptedTurn, calls: readonly BegunCall[]): Promise<void> {
    if (!this.#interrupted.note(turn, calls)) return this.#interrupted.drop(turn);
    // If the line fails, so does the store, which is logged.
    await this.#sessions
      .use(turn.id)
      .whenFree(() => this.#interrupted.keep(turn, calls))
      .catch(() => {});
  }

  #lookLater(): void {
    if (this.#isStopped) return;
    this.#timer = this.#clock.after(RECOVER_EVERY, () => {
      // Whether the store works is logged by its health.
      void this.start().catch(() => this.#lookLater());
    });
  }
}
