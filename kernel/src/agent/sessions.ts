import type { Clock } from '../host/ambient.js';
import { TurnError } from './event.js';
import type { SessionId } from './points/session-store.js';
import { Turnstile } from './turnstile.js';

/** How long a turn waits for the earlier ones of its session, in milliseconds. */
const PATIENCE = 60_000;

/** One turn at a time in each session, in the order of their coming. */
export class Sessions {
  readonly #queue: number;
  readonly #clock: Clock;
  readonly #busy = new Map<string, Turnstile>();

  constructor(queue: number, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /**
   * Waits for the session's earlier turns.
   *
   * @returns what is to be called when the turn has ended.
   * @throws TurnError `session_busy` where too many wait, or the wait was too long.
   */
  async enter(id: SessionId, signal: AbortSignal): Promise<() => void> {
    const name = JSON.stringify([id.project, id.agent, id.key]);
    const turnstile =
      this.#busy.get(name) ?? new Turnstile({ places: 1, queue: this.#queue, patience: PATIENCE, refusal: busy }, this.#clock);
    this.#busy.set(name, turnstile);
    await turnstile.enter(signal);
    return () => {
      turnstile.leave();
      if (turnstile.deserted) this.#busy.delete(name);
    };
  }
}

function busy(): TurnError {
  return new TurnError('session_busy', 'The session is busy with earlier turns; try again in a moment.', { retryAfter: 1 });
}
