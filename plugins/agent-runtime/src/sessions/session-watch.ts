import type { AgentEvent, Message, PluginContext } from '@plugboard/kernel';
import type { TurnRecord, WatchedTurn } from '@plugboard/kernel/contracts';
import { contentSize, endOf } from '../engine/log/batch.js';
import { LogCursor } from '../engine/log/log-cursor.js';
import { bytesOf } from '../engine/messages/message-size.js';
import type { TurnTask } from '../engine/turn/turn-task.js';

export type Ambient = Pick<PluginContext, 'clock' | 'ids'>;

interface WatchedBatch {
  readonly turn: WatchedTurn;
  readonly batch: readonly AgentEvent[];
  /** Approximate bytes of what the watcher makes of it. */
  readonly size: number;
}

/** A position in what is said of one turn, here or at another server. */
export interface TurnCursor {
  readonly turn: WatchedTurn;
  /** Bytes that were not taken. */
  readonly unread: number;
  /** Takes the next batch; undefined if none is there yet. */
  take(): readonly AgentEvent[] | undefined;
  leave(): void;
}

type Read = IteratorResult<WatchedBatch, undefined>;

/**
 * One watcher of a session: a position in the log of each of its turns.
 *
 * 1. It reads each turn that waits or runs, and later each turn that begins. The first batch of a
 *    turn is what the turn has sent before, perhaps nothing.
 * 2. No turn waits for it. If it falls too far behind, its events end: it watches again, and begins
 *    with the turns as they are then.
 */
export class SessionWatch implements AsyncIterableIterator<WatchedBatch, undefined> {
  /** Those that waited or ran when the watch began. */
  readonly turns: readonly WatchedTurn[];
  readonly #maxBehind: number;
  readonly #ambient: Ambient;
  readonly #onEnd: () => void;
  /** In the order of the turns. */
  readonly #cursors: TurnCursor[] = [];
  /** Resolves the read of the waiting watcher. */
  #pending: ((result: Read) => void) | undefined;
  #hasEnded = false;

  /**
   * @param tasks that wait or run, in their order.
   * @param maxBehind approximate bytes.
   * @param onEnd called when the watcher has left, or is too far behind.
   */
  constructor(tasks: readonly TurnTask[], maxBehind: number, ambient: Ambient, onEnd: () => void) {
    this.#maxBehind = maxBehind;
    this.#ambient = ambient;
    this.#onEnd = onEnd;
    this.turns = tasks.map((task, ahead) => this.#add(task, ahead));
  }

  /**
   * A turn of the session begins. @param ahead how many waiting and running turns are before it.
   */
  add(task: TurnTask, ahead: number): void {
    if (this.#hasEnded) return;
    this.#add(task, ahead);
    this.wake();
  }

  /** A turn of another server is there. */
  addCursor(cursor: TurnCursor): void {
    if (!this.#hasEnded) this.#cursors.push(cursor);
  }

  next(): Promise<Read> {
    const next = this.#take();
    if (next || this.#hasEnded) return Promise.resolve(readOf(next));
    return new Promise((resolve) => {
      this.#pending = resolve;
    });
  }

  return(): Promise<Read> {
    this.#end();
    return Promise.resolve(readOf(undefined));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #add(task: TurnTask, ahead: number): WatchedTurn {
    task.watched ??= new WatchedTask(task, ahead, this.#ambient);
    const cursor = new WatchCursor(task, task.watched, () => this.wake());
    task.log.addWatcher(cursor);
    this.#cursors.push(cursor);
    return task.watched;
  }

  /** The next batch of the earliest turn that has one. */
  #take(): WatchedBatch | undefined {
    for (let index = 0; index < this.#cursors.length; index++) {
      const cursor = this.#cursors[index];
      const batch = cursor?.take();
      if (!cursor || !batch) continue;
      if (endOf(batch)) {
        this.#cursors.splice(index, 1);
        cursor.leave();
      }
      return { turn: cursor.turn, batch, size: contentSize(batch) };
    }
    return undefined;
  }

  /** Something of a turn has come. */
  wake(): void {
    if (this.#pending) {
      const next = this.#take();
      if (!next) return;
      const give = this.#pending;
      this.#pending = undefined;
      give(readOf(next));
    } else if (this.#cursors.reduce((sum, { unread }) => sum + unread, 0) >= this.#maxBehind) this.#end();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const cursor of this.#cursors.splice(0)) cursor.leave();
    this.#pending?.(readOf(undefined));
    this.#pending = undefined;
    this.#onEnd();
  }
}

/** The position of a watcher in the log of one turn. */
class WatchCursor extends LogCursor implements TurnCursor {
  readonly turn: WatchedTurn;
  readonly #onWake: () => void;

  constructor(task: TurnTask, turn: WatchedTurn, onWake: () => void) {
    super(task.log, task.soFar);
    this.turn = turn;
    this.#onWake = onWake;
  }

  wake(): void {
    this.#onWake();
  }
}

function readOf(value: WatchedBatch | undefined): Read {
  return value ? { value, done: false } : { value: undefined, done: true };
}

/** Length of the id of a turn whose transport gave it none. */
const ID_LENGTH = 24;

/** A turn as all its watchers see it. */
class WatchedTask implements WatchedTurn {
  readonly id: string;
  readonly createdAt: number;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly isWaiting: boolean;
  readonly ahead: number;
  readonly #task: TurnTask;

  /** @param ahead how many waiting and running turns are before it. */
  constructor(task: TurnTask, ahead: number, { clock, ids }: Ambient) {
    const { id, messages } = task.request;
    const start = messages.findLastIndex(({ role }) => role === 'assistant') + 1;
    this.id = id ?? ids.base62(ID_LENGTH);
    this.createdAt = Math.floor(clock.now() - (clock.monotonic() - task.arrivedAt));
    this.messages = messages.slice(start).filter(({ role }) => role !== 'system');
    this.size = this.messages.reduce((sum, message) => sum + bytesOf(message), 0);
    this.isWaiting = task.state === 'waiting';
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
