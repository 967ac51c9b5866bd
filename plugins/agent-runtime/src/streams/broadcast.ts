import type { AgentEvent } from '@plugboard/kernel';
import { failed, failureOf, isTerminal, TurnError } from '@plugboard/kernel/contracts';
import { Channel } from './channel.js';

type Batch = readonly AgentEvent[];

/** Batches buffered for a slow reader. Beyond them the writer waits. */
const CHANNEL_BATCHES = 16;
/**
 * Approximate number of characters buffered for readers that join later. When a turn exceeds it, no
 * further reader can join.
 */
const REPLAY_LIMIT = 1024 * 1024;
/** What an event counts in addition to its text. */
const EVENT_OVERHEAD = 64;

/**
 * The events of one turn, for any number of readers. A reader that joins late first receives the
 * earlier events. A slow reader makes the writer wait, as in a channel, until it leaves.
 */
export class Broadcast {
  readonly #readers = new Set<Channel<Batch>>();
  readonly #onNoReaders: () => void;
  #sent: Batch[] | undefined = [];
  #size = 0;
  /** Whether the terminal event was written. Readers that leave then do not abandon the turn. */
  #complete = false;
  #ended = false;

  /** @param onNoReaders called when the last reader leaves before the end. */
  constructor(onNoReaders: () => void) {
    this.#onNoReaders = onNoReaders;
  }

  /**
   * Adds a reader.
   * @param signal aborts when the reader leaves.
   * @returns undefined if the earlier events are no longer buffered.
   */
  join(signal: AbortSignal): AsyncIterable<Batch> | undefined {
    if (!this.#sent) return undefined;
    const reader: Channel<Batch> = new Channel(this.#sent.length + CHANNEL_BATCHES, () => this.#leave(reader));
    for (const batch of this.#sent) reader.write(batch);
    if (this.#ended) {
      reader.end();
      return reader;
    }
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

  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.end();
    this.#readers.clear();
  }

  #leave(reader: Channel<Batch>): void {
    if (this.#readers.delete(reader) && this.#readers.size === 0 && !this.#complete) this.#onNoReaders();
  }

  #remember(batch: Batch): void {
    if (!this.#sent) return;
    for (const event of batch) {
      const text = event.type === 'text' ? (event.json ?? event.text) : event.type === 'tool-result' ? event.content : '';
      this.#size += text.length + EVENT_OVERHEAD;
    }
    if (this.#size > REPLAY_LIMIT) this.#sent = undefined;
    else this.#sent.push(batch);
  }
}

export function callerDisconnected(): TurnError {
  return new TurnError('abandoned', 'The caller disconnected before the agent finished.');
}
