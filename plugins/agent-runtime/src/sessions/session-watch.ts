import type { AgentEvent, Clock, IdSource } from '@plugboard/kernel';
import type { WatchedTurn } from '@plugboard/kernel/contracts';
import { contentSize, endOf } from '../engine/log/batch.js';
import { LogCursor } from '../engine/log/log-cursor.js';
import type { TurnTask } from '../engine/turn/turn-task.js';
import { WatchedTask } from './watched-task.js';

/** Events of a watched turn. */
interface WatchedBatch {
  readonly turn: WatchedTurn;
  readonly batch: readonly AgentEvent[];
  /** Approximate bytes of what the watcher makes of it. */
  readonly size: number;
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
  readonly #ambient: { readonly clock: Clock; readonly ids: IdSource };
  readonly #onEnd: () => void;
  /** In the order of the turns. */
  readonly #cursors: WatchCursor[] = [];
  /** Resolves the read of the waiting watcher. */
  #pending: ((result: Read) => void) | undefined;
  #hasEnded = false;

  /**
   * @param tasks that wait or run, in their order.
   * @param maxBehind approximate bytes.
   * @param onEnd called when the watcher has left, or is too far behind.
   */
  constructor(
    tasks: readonly TurnTask[],
    maxBehind: number,
    ambient: { readonly clock: Clock; readonly ids: IdSource },
    onEnd: () => void,
  ) {
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
    this.#wake();
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
    const cursor = new WatchCursor(task, task.watched, () => this.#wake());
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

  #wake(): void {
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
class WatchCursor extends LogCursor {
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

  leave(): void {
    this.leaveLog();
  }
}

function readOf(value: WatchedBatch | undefined): Read {
  return value ? { value, done: false } : { value: undefined, done: true };
}
