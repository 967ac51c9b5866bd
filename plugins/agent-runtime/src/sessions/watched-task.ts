import type { Clock, IdSource, Message } from '@plugboard/kernel';
import type { TurnRecord, WatchedTurn } from '@plugboard/kernel/contracts';
import { bytesOf } from '../engine/messages/message-size.js';
import type { TurnTask } from '../engine/turn/turn-task.js';

/** Length of the id of a turn whose transport gave it none. */
const ID_LENGTH = 24;

/** A turn as all its watchers see it. */
export class WatchedTask implements WatchedTurn {
  readonly id: string;
  readonly createdAt: number;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly isWaiting: boolean;
  readonly ahead: number;
  readonly #task: TurnTask;

  /** @param ahead how many waiting and running turns are before it. */
  constructor(task: TurnTask, ahead: number, { clock, ids }: { readonly clock: Clock; readonly ids: IdSource }) {
    const { id, messages } = task.request;
    const start = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
    this.id = id ?? ids.base62(ID_LENGTH);
    this.createdAt = Math.floor(clock.now() - (clock.monotonic() - task.arrivedAt));
    this.messages = messages.slice(start).filter(({ role }) => role !== 'system');
    this.size = this.messages.reduce((sum, message) => sum + bytesOf(message), 0);
    this.isWaiting = task.isWaiting;
    this.ahead = ahead;
    this.#task = task;
  }

  get target(): WatchedTurn['target'] {
    return this.#task.request.target;
  }

  get approvals(): WatchedTurn['approvals'] {
    return this.#task.request.approvals ?? [];
  }

  get record(): TurnRecord | undefined {
    return this.#task.record;
  }

  cancel(): Promise<void> {
    return this.#task.cancel();
  }
}
