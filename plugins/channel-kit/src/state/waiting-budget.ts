import type { Budget } from '@plugboard/kernel/contracts';

/** The budget of the messages and replies of one entry that wait. */
export class WaitingBudget {
  readonly #budget: Budget;
  /** What gives back what is taken. */
  readonly #taken = new Set<() => void>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Takes characters for a chat. @returns what gives them back, or undefined if there are none. */
  take(chat: string, size: number): (() => void) | undefined {
    if (!this.#budget.reserve([chat], size)) return undefined;
    const release = () => {
      if (this.#taken.delete(release)) this.#budget.release([chat], size);
    };
    this.#taken.add(release);
    return release;
  }

  /** Gives back everything. */
  releaseAll(): void {
    for (const release of this.#taken) release();
  }
}
