import type { TurnEvents, TurnRecord } from '@plugboard/kernel/contracts';
import type { Batch } from '../log/batch.js';
import type { ParentCall } from './parent-call.js';

/** The events of a child for the tool that started it. The readers of the turn above get them, too. */
export class NestedEvents implements TurnEvents {
  readonly #events: TurnEvents;
  readonly #parent: ParentCall;
  readonly #agent: string;

  constructor(events: TurnEvents, parent: ParentCall, agent: string) {
    this.#events = events;
    this.#parent = parent;
    this.#agent = agent;
  }

  get record(): TurnRecord | undefined {
    return this.#events.record;
  }

  cancel(): Promise<void> {
    return this.#events.cancel();
  }

  setRead(isRead: boolean): void {
    this.#events.setRead(isRead);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch> {
    const { nest, call } = this.#parent.options;
    for await (const events of this.#events) {
      const full = nest({ type: 'nested', call: call.id, agent: this.#agent, events });
      if (full) await full;
      yield events;
    }
  }
}
