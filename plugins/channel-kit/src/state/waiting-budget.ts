import type { Budget } from '@plugboard/kernel/contracts';

/** The budget of the messages and replies of one entry that wait. */
export class WaitingBudget {
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Takes characters for a chat. @returns what gives them back, or undefined if there are none. */
  take(chat: string, size: number): (() => void) | undefined {
    if (!this.#budget.reserve([chat], size)) return undefined;
    return () => this.#budget.release([chat], size);
  }
}
