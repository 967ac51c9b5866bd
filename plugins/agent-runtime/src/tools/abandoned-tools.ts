import type { Clock, SessionId, Turn } from '@plugboard/kernel';

/** How long a tool that was told to end may take for it, in milliseconds. */
const SETTLE = 5_000;

interface Straggler {
  readonly turn: Turn;
  /** Resolved when the tool has ended, or was left behind. */
  readonly over: Promise<void>;
}

/**
 * Tools that were told to end and have not yet. Whoever waits for their turn is told its end at once; the next turn of the session waits for them, so
 * that no two turns of it are at work at the same time. A promise cannot be ended from outside: what does not end by itself is left behind.
 */
export class Stragglers {
  readonly #clock: Clock;
  readonly #all = new Set<Straggler>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param ended resolved when the tool has ended.
   * @param leaveBehind called when it has not in time.
   */
  watch(turn: Turn, ended: Promise<void>, leaveBehind: () => void): void {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const straggler = { turn, over };
    this.#all.add(straggler);
    const forget = () => {
      timer.cancel();
      this.#all.delete(straggler);
      resolve();
    };
    const timer = this.#clock.after(SETTLE, () => {
      forget();
      leaveBehind();
    });
    ended.then(forget);
  }

  /** Waits for those of a session's earlier turns. @throws the signal's reason when that is aborted before. */
  async gone(session: SessionId, signal: AbortSignal): Promise<void> {
    const mine = [...this.#all].filter(({ turn }) => belongs(turn, session));
    if (mine.length === 0) return;
    const aborted = Promise.withResolvers<never>();
    const giveUp = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      signal.throwIfAborted();
      await Promise.race([Promise.all(mine.map(({ over }) => over)), aborted.promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }
}

function belongs(turn: Turn, { project, agent, key }: SessionId): boolean {
  return turn.session === `api:${key}` && turn.agent === agent && turn.principal.project === project;
}
