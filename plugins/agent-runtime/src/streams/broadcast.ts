import type { AgentEvent } from '@plugboard/kernel';
import { failed, failureOf, isTerminal, TurnError } from '@plugboard/kernel/contracts';
import { Channel } from './channel.js';

type Batch = readonly AgentEvent[];

/** Batches that wait for a slow reader before the writer waits for it. */
const CHANNEL_BATCHES = 16;
/**
 * What is kept for readers that join later, in characters of text, about. Beyond it nobody can join
 * any more.
 */
const REPLAY_LIMIT = 1024 * 1024;
/** What an event counts besides its text. */
const EVENT_OVERHEAD = 64;

/**
 * The events of one turn, for any number of readers: whoever joins late gets what was sent so far,
 * and goes on live. A slow reader holds the writer up, as it does in a channel; one that has left
 * does not.
 */
export class Broadcast {
  readonly #readers = new Set<Channel<Batch>>();
  readonly #onNoReaders: () => void;
  #sent: Batch[] | undefined = [];
  #size = 0;
  /** Whether the terminal event was written. Readers may then leave without abandoning the turn. */
  #complete = false;
  #ended = false;

  /** @param onNoReaders called when the last reader has left before the end. */
  constructor(onNoReaders: () => void) {
    this.#onNoReaders = onNoReaders;
  }

  /**
   * @param signal aborted when the reader goes.
   * @returns undefined where too much was sent already for anyone to join.
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
      reader.unbound();
      reader.write([failed(failureOf(abandoned(), false))]);
      reader.end();
      this.#leave(reader);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    return reader;
  }

  /** Where it returns a promise, a reader is slow, and the writer waits before it goes on. */
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

  /** The writer need not wait for the readers of today any more. */
  unbound(): void {
    for (const reader of this.#readers) reader.unbound();
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

export function abandoned(): TurnError {
  return new TurnError('abandoned', 'The caller went away before the agent had finished.');
}
