import type { TurnEvents, TurnRecord } from '@plugboard/kernel/contracts';
import { type Batch, sizeOf } from './batch.js';
import { Channel } from './channel.js';

/**
 * Approximate bytes buffered for a slow reader. Beyond them the turn waits, and with it the model's
 * socket.
 */
const CHANNEL_SIZE = 64 * 1024;
/**
 * Approximate number of bytes buffered for readers that join later. When a turn exceeds it, no
 * further reader can join.
 */
const REPLAY_LIMIT = 1024 * 1024;

/** Receives each batch after it was written. Must not throw. */
export type Watcher = (batch: Batch) => void;

/** What a broadcast reports to its turn. */
interface BroadcastOwner {
  /** A reader stopped before the end. It is no longer a reader then. */
  onReaderLeft(): void;
  /** A reader wants the turn to end. Resolves when it has ended. */
  cancel(): Promise<void>;
  /** What has happened in the turn so far. */
  record(): TurnRecord | undefined;
}

/**
 * The events of one turn, for any number of readers. A reader that joins late first receives the
 * earlier events. A slow reader makes the writer wait, as in a channel, until it leaves.
 */
export class Broadcast {
  readonly #isReplayed: boolean;
  readonly #owner: BroadcastOwner;
  readonly #readers: TurnReader[] = [];
  /** Undefined while nobody has watched. */
  #watchers: Set<Watcher> | undefined;
  /** The events so far, for readers that join later; undefined if there can be none. */
  #sent: Batch[] | undefined = [];
  /** Size of `#sent`. */
  #size = 0;

  /** @param isReplayed whether readers may join after the first event. */
  constructor(isReplayed: boolean, owner: BroadcastOwner) {
    this.#isReplayed = isReplayed;
    this.#owner = owner;
  }

  /** Number of readers. */
  get readers(): number {
    return this.#readers.length;
  }

  /** Whether all earlier events are still buffered. */
  get isJoinable(): boolean {
    return this.#sent !== undefined;
  }

  /** Adds a reader, which receives the buffered events first. */
  join(): TurnReader {
    const reader = new TurnReader(this, this.#owner, CHANNEL_SIZE + this.#size);
    for (const batch of this.#sent ?? []) reader.write(batch);
    this.#readers.push(reader);
    return reader;
  }

  /** Adds a watcher, for which the writer never waits. */
  watch(watcher: Watcher): void {
    this.#watchers ??= new Set();
    this.#watchers.add(watcher);
  }

  unwatch(watcher: Watcher): void {
    this.#watchers?.delete(watcher);
  }

  /** Sends a batch to all readers. If it returns a promise, the writer must wait for it. */
  write(batch: Batch): Promise<unknown> | undefined {
    this.#remember(batch);
    if (this.#watchers) for (const watcher of this.#watchers) watcher(batch);
    if (this.#readers.length === 1) return this.#readers[0]?.write(batch);
    const slow = this.#readers.flatMap((reader) => reader.write(batch) ?? []);
    return slow.length > 0 ? Promise.all(slow) : undefined;
  }

  /** Removes the limit of the readers' buffers: the writer no longer waits for them. */
  removeLimit(): void {
    for (const reader of this.#readers) reader.removeLimit();
  }

  /** Removes a reader. The writer no longer waits for it. */
  leave(reader: TurnReader): void {
    const index = this.#readers.indexOf(reader);
    if (index < 0) return;
    this.#readers.splice(index, 1);
    reader.removeLimit();
  }

  /** Ends the events. Readers still receive what is buffered for them. */
  end(): void {
    this.#sent = undefined;
    this.#watchers = undefined;
    for (const reader of this.#readers.splice(0)) reader.end();
  }

  #remember(batch: Batch): void {
    if (!this.#sent) return;
    if (this.#isReplayed) this.#size += sizeOf(batch);
    if (this.#isReplayed && this.#size <= REPLAY_LIMIT) this.#sent.push(batch);
    else this.#sent = undefined;
  }
}

/** The events of a turn for one reader. */
export class TurnReader extends Channel<Batch> implements TurnEvents {
  readonly #owner: BroadcastOwner;

  constructor(broadcast: Broadcast, owner: BroadcastOwner, limit: number) {
    super(limit, sizeOf, () => {
      broadcast.leave(this);
      owner.onReaderLeft();
    });
    this.#owner = owner;
  }

  cancel(): Promise<void> {
    return this.#owner.cancel();
  }

  get record(): TurnRecord | undefined {
    return this.#owner.record();
  }
}
