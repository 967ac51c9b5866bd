import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModelRequest } from '@plugboard/kernel';
import { Account } from '@plugboard/kernel/contracts';

/** What is held of an answer before the runtime has it, in the account of its turn (S-75). */
export class HeldAnswer {
  readonly #account: ModelRequest['account'];
  #reserved = 0;
  #isOver = false;

  constructor(account: ModelRequest['account']) {
    this.#account = account;
  }

  /** Called before these bytes are held. @throws TurnError `overloaded` without memory. */
  add(bytes: number): void {
    if (!this.#account || bytes <= 0 || this.#isOver) return;
    const cost = Account.costOf(bytes);
    this.#account.require(cost);
    this.#reserved += cost;
  }

  /** The answer is over: what was counted here is gone, or counts with the events. */
  release(): void {
    this.#isOver = true;
    this.#account?.release(this.#reserved);
    this.#reserved = 0;
  }
}

/** The answer that a package's request is for: packages pass nothing of ours to `fetch`. */
export const heldAnswers = new AsyncLocalStorage<HeldAnswer>();
