import { type Clock, type PluginContext, parseSize } from '@plugboard/kernel';
import { Account, type Budget, heapLimit, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from '../../config.js';

/** How long a turn waits for memory before it loads its history, in milliseconds. */
const WAIT_TIMEOUT = 60_000;

/** The memory of turns: `limits.memory`. */
export class TurnMemory {
  readonly budget: Budget;
  /** The maximum size of the answer of a turn, in bytes. */
  answerSize = 0;
  readonly #clock: Clock;

  constructor(@inject(CONTEXT) { config, clock, budgets }: PluginContext<RuntimeSettings>) {
    this.budget = budgets.memory;
    this.#clock = clock;
    this.reconfigure(config);
  }

  reconfigure({ limits }: RuntimeSettings): void {
    this.budget.resize(limits.memory === undefined ? Math.floor(heapLimit() / 2) : parseSize(limits.memory));
    this.answerSize = parseSize(limits.answerSize);
  }

  /**
   * Reserves the memory of messages that are about to be loaded, as soon as there is enough.
   *
   * @param bytes of the messages as JSON.
   * @throws TurnError `session_full` if they never fit, `overloaded` if the turn waited too long;
   *   the signal's reason if it aborts first.
   */
  async reserve(account: Account, bytes: number, signal: AbortSignal): Promise<void> {
    const memory = Account.costOf(bytes);
    if (account.reserved + memory > account.limit) throw neverFits(account, memory);
    if (account.reserve(memory)) return;
    const late = new AbortController();
    const timer = this.#clock.after(WAIT_TIMEOUT, () => late.abort(account.shortage()));
    try {
      await account.wait(memory, AbortSignal.any([signal, late.signal]));
    } finally {
      timer.cancel();
    }
  }
}

function neverFits({ setting, limit }: Account, memory: number): TurnError {
  return new TurnError(
    'session_full',
    `The conversation needs ${memory} bytes of memory, and one caller may take ${limit} (\`${setting}\`): start a new session, or fork this one at an earlier turn.`,
  );
}
