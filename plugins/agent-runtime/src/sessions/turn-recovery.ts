import type { Clock, PluginContext } from '@plugboard/kernel';
import type { InterruptedTurn, Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { InterruptedTurns } from './interrupted-turns.js';
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
  readonly #storage: SessionStorage;
  readonly #sessions: SessionSupervisor;
  readonly #interrupted: InterruptedTurns;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(
    @inject(CONTEXT) { clock }: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(SessionSupervisor) sessions: SessionSupervisor,
    @inject(InterruptedTurns) interrupted: InterruptedTurns,
  ) {
    this.#clock = clock;
    this.#storage = storage;
    this.#sessions = sessions;
    this.#interrupted = interrupted;
  }

  /** @throws if the store fails. */
  async start(): Promise<void> {
    const { store } = this.#storage;
    const handled = (await store.recover()).map((turn) => this.#handle(turn));
    if (store.shared) this.#lookLater();
    else await Promise.all(handled);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #handle(turn: InterruptedTurn): Promise<void> {
    if (!this.#interrupted.note(turn)) return;
    const keep = (turnId = turn.turnId) => this.#interrupted.keepInput(turn, turnId);
    // If the line fails, so does the store, which is logged.
    await this.#sessions
      .use(turn.id)
      .whenFree((_, turnId) => keep(turnId))
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
