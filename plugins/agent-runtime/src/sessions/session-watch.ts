import type { AgentEvent, Clock, IdSource } from '@plugboard/kernel';
import type { WatchedTurn } from '@plugboard/kernel/contracts';
import { bytesOf } from '../history/message-size.js';
import type { TurnTask } from '../lifecycle/turn-task.js';
import { endOf, sizeOf } from '../streams/batch.js';
import type { Watcher } from '../streams/broadcast.js';
import { Channel } from '../streams/channel.js';

/** Length of the id of a turn whose transport gave it none. */
const ID_LENGTH = 24;

interface Ambient {
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** Events of a watched turn. */
interface WatchedBatch {
  readonly turn: WatchedTurn;
  readonly batch: readonly AgentEvent[];
}

/**
 * One watcher of a session.
 *
 * 1. It is handed each turn that waits or runs, and later each turn that begins. The first batch of
 *    a turn is what the turn has sent before, perhaps nothing.
 * 2. No turn waits for it. If it falls too far behind, its events end: it watches again, and begins
 *    with the turns as they are then.
 */
export class SessionWatch {
  /** Those that waited or ran when the watch began. */
  readonly turns: readonly WatchedTurn[];
  readonly events: Channel<WatchedBatch>;
  readonly #ambient: Ambient;
  readonly #onEnd: () => void;
  readonly #watchers = new Map<TurnTask, Watcher>();

  /**
   * @param tasks that wait or run, in their order.
   * @param maxBehind approximate bytes.
   * @param onEnd called when the watcher has left, or is too far behind.
   */
  constructor(tasks: readonly TurnTask[], maxBehind: number, ambient: Ambient, onEnd: () => void) {
    this.#ambient = ambient;
    this.#onEnd = onEnd;
    this.events = new Channel(maxBehind, sizeOfItem, () => this.#end());
    this.turns = tasks.map((task, ahead) => this.#add(task, ahead));
  }

  /**
   * A turn of the session begins. @param ahead how many waiting and running turns are before it.
   */
  add(task: TurnTask, ahead: number): void {
    if (!this.#endIfBehind()) this.#add(task, ahead);
  }

  #add(task: TurnTask, ahead: number): WatchedTurn {
    const turn = watchedTurn(task, ahead, this.#ambient);
    const watcher: Watcher = (batch) => {
      if (this.#endIfBehind()) return;
      if (endOf(batch)) this.#watchers.delete(task);
      this.events.write({ turn, batch });
    };
    this.#watchers.set(task, watcher);
    this.events.write({ turn, batch: task.watch(watcher) });
    return turn;
  }

  #endIfBehind(): boolean {
    if (!this.events.isFull) return false;
    this.events.end();
    this.#end();
    return true;
  }

  #end(): void {
    for (const [task, watcher] of this.#watchers) task.unwatch(watcher);
    this.#watchers.clear();
    this.#onEnd();
  }
}

function watchedTurn(task: TurnTask, ahead: number, { clock, ids }: Ambient): WatchedTurn {
  const { target, messages, approvals = [] } = task.request;
  task.watchId ??= task.request.id ?? ids.base62(ID_LENGTH);
  const start = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
  return {
    id: task.watchId,
    target,
    createdAt: Math.floor(clock.now() - (clock.monotonic() - task.arrivedAt)),
    messages: messages.slice(start).filter(({ role }) => role !== 'system'),
    approvals,
    ahead,
    isWaiting: task.isWaiting,
    get record() {
      return task.recorder?.record;
    },
    cancel: () => task.cancel(),
  };
}

/** The messages of a turn count with its first batch: both may be read late. */
function sizeOfItem({ turn, batch }: WatchedBatch): number {
  const isFirst = batch.length === 0 || batch[0]?.type === 'started';
  return sizeOf(batch) + (isFirst ? turn.messages.reduce((sum, message) => sum + bytesOf(message), 0) : 0);
}
