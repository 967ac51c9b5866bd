import type { AgentEvent } from '@plugboard/kernel';
import type { TurnEvents, TurnRecord } from '@plugboard/kernel/contracts';

/**
 * A turn that continues a response in its session, unless another server is faster: then it runs
 * in a copy of the session (PG-21).
 */
export class BranchingTurn implements TurnEvents {
  #turn: TurnEvents;
  #isRead = true;
  readonly #branch: () => Promise<TurnEvents>;

  /** @param branch runs it in a copy of the session. */
  constructor(turn: TurnEvents, branch: () => Promise<TurnEvents>) {
    this.#turn = turn;
    this.#branch = branch;
  }

  get record(): TurnRecord | undefined {
    return this.#turn.record;
  }

  cancel(): Promise<void> {
    return this.#turn.cancel();
  }

  setRead(isRead: boolean): void {
    this.#isRead = isRead;
    this.#turn.setRead(isRead);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly AgentEvent[]> {
    let hasBegun = false;
    for await (const batch of this.#turn) {
      const [event] = batch;
      if (!hasBegun && event?.type === 'failed' && event.failure.code === 'session_busy') {
        this.#turn = await this.#branch();
        this.#turn.setRead(this.#isRead);
        yield* this.#turn;
        return;
      }
      hasBegun = true;
      yield batch;
    }
  }
}
