import type { AgentEvent, ModelEvent } from '@plugboard/kernel';
import { Account, TurnError } from '@plugboard/kernel/contracts';
import { sizeOfEvent } from '../log/event-size.js';

/** Bytes that an event takes besides its text, on average: many are joined to one text. */
const EVENT_SIZE = 8;

/** Reserves the memory of an answer as it grows: what the model says, and the results of tools. */
export class AnswerMemory {
  /** Of the turn. */
  readonly account: Account;
  readonly #limit: number;
  #said = 0;
  /** Characters of the arguments of calls that the model is still writing, by the calls' ids. */
  #written: Map<string, number> | undefined;

  /** @param limit of what the model says in the turn, in bytes. */
  constructor(account: Account, limit: number) {
    this.account = account;
    this.#limit = limit;
  }

  /**
   * What the model says: text, reasoning, tool calls, and what its provider attaches to them.
   *
   * @throws TurnError `model_failed` beyond the limit of an answer, `overloaded` without memory.
   */
  say(events: readonly ModelEvent[]): void {
    let bytes = 0;
    for (const event of events) {
      bytes += EVENT_SIZE + sizeOfEvent(event);
      if (event.type === 'tool-call-delta') {
        this.#written ??= new Map();
        this.#written.set(event.id, (this.#written.get(event.id) ?? 0) + event.arguments.length);
      } else if (event.type === 'tool-call') {
        bytes -= Math.min(event.arguments.length, this.#written?.get(event.id) ?? 0);
        this.#written?.delete(event.id);
      }
    }
    this.#said += bytes;
    if (this.#said > this.#limit) {
      throw new TurnError('model_failed', `The answer is larger than the limit of ${this.#limit} bytes (\`limits.answerSize\`).`);
    }
    this.account.require(Account.costOf(bytes));
  }

  /** Results of tools. @throws TurnError `overloaded` without memory. */
  addResults(events: readonly AgentEvent[]): void {
    for (const event of events) {
      if (event.type === 'tool-result') this.account.require(Account.costOf(sizeOfEvent(event)));
    }
  }
}
