import type { Target, TurnEvents, TurnRecord } from '@plugboard/kernel/contracts';
import type { Batch } from '../log/batch.js';
import type { ParentCall } from './parent-call.js';
import { shownNested } from './shown-nested.js';

/** The events of a child for the tool that started it. Readers of the turn above get them, too. */
export class NestedEvents implements TurnEvents {
  readonly #events: TurnEvents;
  readonly #parent: ParentCall;
  readonly #target: Target;

  constructor(events: TurnEvents, parent: ParentCall, target: Target) {
    this.#events = events;
    this.#parent = parent;
    this.#target = target;
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
    const { name: agent, toolVisibility } = this.#target;
    for await (const batch of this.#events) {
      const events = shownNested(batch, toolVisibility);
      const full = events.length > 0 && nest({ type: 'nested', call: call.id, agent, events });
      if (full) await full;
      yield batch;
    }
  }
}
