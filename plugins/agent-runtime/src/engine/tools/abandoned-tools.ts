import type { Clock, Turn } from '@plugboard/kernel';

/**
 * How long a turn or a tool may go on after it was aborted, in milliseconds. After that the turn is
 * overdue or the tool abandoned, and what waits for it continues.
 */
export const SETTLE_TIMEOUT = 5_000;

interface AbandonedTool {
  readonly turn: Turn;
  /** Resolves when the tool has ended or its time to settle is over. */
  readonly over: Promise<void>;
}

/**
 * Tool calls that were aborted and still run. Their turn ends at once; the next turn of the session
 * waits for them, so that no two turns of a session work at the same time. A promise cannot be
 * ended from outside, so the wait has a limit.
 */
export class AbandonedTools {
  readonly #clock: Clock;
  readonly #all = new Set<AbandonedTool>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * @param ended resolves when the tool has ended.
   * @param onTimeout called if it has not ended in time.
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

  /**
   * Waits for the tools of the earlier turns of a turn's session.
   * @returns undefined if there are none.
   * @throws the signal's reason if it aborts first.
   */
  settled(turn: Turn): Promise<void> | undefined {
    if (this.#all.size === 0 || turn.session === undefined) return undefined;
    const mine = [...this.#all].filter((one) => isSameSession(one.turn, turn));
    return mine.length === 0 ? undefined : this.#wait(mine, turn.signal);
  }

  async #wait(mine: readonly AbandonedTool[], signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      signal.throwIfAborted();
      await Promise.race([Promise.all(mine.map(({ over }) => over)), aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}

function isSameSession(one: Turn, other: Turn): boolean {
  return one.session === other.session && one.agent === other.agent && one.principal.project === other.principal.project;
}
