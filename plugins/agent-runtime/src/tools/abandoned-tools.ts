import type { Clock, SessionId, Turn } from '@plugboard/kernel';
import { SETTLE_TIMEOUT } from '../streams/settle-timeout.js';

interface AbandonedTool {
  readonly turn: Turn;
  /** Resolved when the tool has ended, or was left behind. */
  readonly over: Promise<void>;
}

/**
 * Tools that were told to end and have not yet. Whoever waits for their turn is told its end at once; the next turn of the session waits for them, so
 * that no two turns of it are at work at the same time. A promise cannot be ended from outside: what does not end by itself is left behind.
 */
export class AbandonedTools {
  readonly #clock: Clock;
  readonly #all = new Set<AbandonedTool>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param ended resolved when the tool has ended.
   * @param onTimeout called when it has not in time.
   */
  add(turn: Turn, ended: Promise<void>, onTimeout: () => void): void {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const tool = { turn, over };
    this.#all.add(tool);
    const forget = () => {
      timer.cancel();
      this.#all.delete(tool);
      resolve();
    };
    const timer = this.#clock.after(SETTLE_TIMEOUT, () => {
      forget();
      onTimeout();
    });
    ended.then(forget);
  }

  /** Waits for those of a session's earlier turns. @throws the signal's reason when that is aborted before. */
  async settled(session: SessionId, signal: AbortSignal): Promise<void> {
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
