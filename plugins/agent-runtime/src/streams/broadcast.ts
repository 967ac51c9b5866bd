import { failed, failureOf, isTerminal, TurnError } from '@plugboard/kernel/contracts';
import { type Batch, batchChannel, sizeOf } from './batch-channel.js';
import type { Channel } from './channel.js';

/**
 * Approximate number of bytes buffered for readers that join later. When a turn exceeds it, no
 * further reader can join.
 */
const REPLAY_LIMIT = 1024 * 1024;

/**
 * The events of one turn, for any number of readers. A reader that joins late first receives the
 * earlier events. A slow reader makes the writer wait, as in a channel, until it leaves.
 */
export class Broadcast {
  readonly #readers = new Set<Channel<Batch>>();
  readonly #onNoReaders: () => void;
  /** The events so far, for readers that join later; undefined if there can be none. */
  #sent: Batch[] | undefined = [];
  /** Size of `#sent`. */
  #size = 0;
  readonly #isReplayed: boolean;
  /** Whether the terminal event was written. Readers that leave then do not end the turn. */
  #complete = false;

  /**
   * @param isReplayed whether readers may join after the first event.
   * @param onNoReaders called when the last reader leaves before the end.
   */
  constructor(isReplayed: boolean, onNoReaders: () => void) {
    this.#isReplayed = isReplayed;
    this.#onNoReaders = onNoReaders;
  }

  /**
   * Adds a reader.
   * @param signal aborts when the reader leaves.
   * @returns undefined if the turn has ended, or the earlier events are no longer buffered.
   */
  join(signal: AbortSignal): AsyncIterable<Batch> | undefined {
    if (!this.#sent) return undefined;
    const reader: Channel<Batch> = batchChannel(() => this.#leave(reader), this.#size);
    for (const batch of this.#sent) reader.write(batch);
    this.#readers.add(reader);
    const onAbort = () => {
      reader.removeLimit();
      reader.write([failed(failureOf(callerDisconnected(), false))]);
      reader.end();
      this.#leave(reader);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return reader;
  }

  /** Sends a batch to all readers. If it returns a promise, the writer must wait for it. */
  write(batch: Batch): Promise<unknown> | undefined {
    this.#remember(batch);
    const last = batch.at(-1);
    if (last && isTerminal(last)) this.#complete = true;
    const slow: Promise<void>[] = [];
    for (const reader of this.#readers) {
      const full = reader.write(batch);
      if (full) slow.push(full);
    }
    return slow.length > 0 ? Promise.all(slow) : undefined;
  }

  /** Removes the limit of the current readers' buffers: the writer no longer waits for them. */
  removeLimit(): void {
    for (const reader of this.#readers) reader.removeLimit();
  }

  /**
   * Ends the events, and drops those that are buffered: the broadcast may stay in memory longer.
   */
  end(): void {
    this.#sent = undefined;
    for (const reader of this.#readers) reader.end();
    this.#readers.clear();
  }

  #leave(reader: Channel<Batch>): void {
    if (this.#readers.delete(reader) && this.#readers.size === 0 && !this.#complete) this.#onNoReaders();
  }

  #remember(batch: Batch): void {
    if (!this.#sent) return;
    if (this.#isReplayed) this.#size += sizeOf(batch);
    if (this.#isReplayed && this.#size <= REPLAY_LIMIT) this.#sent.push(batch);
    else this.#sent = undefined;
  }
}

export function callerDisconnected(): TurnError {
  return new TurnError('abandoned', 'The caller disconnected before the agent finished.');
}
