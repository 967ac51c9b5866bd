import type { AgentEvent } from '@plugboard/kernel';
import type { TurnLogFields } from './turn-log-fields.js';

type Batch = readonly AgentEvent[];
type Text = IteratorResult<string, undefined>;

/** Writes the events of a turn as the frames of a protocol. */
export interface TurnWriter {
  /** What every stream begins with. */
  readonly opening: string;
  /** The frame for a silent stream, which readers ignore. */
  readonly comment: string;
  /** Whether an event has arrived. Until then the turn waits in the queue. */
  started: boolean;
  /** Whether the end of the turn was written. Nothing may follow. */
  readonly ended: boolean;
  /** Returns the frames of a batch; empty if it has no content. */
  write(batch: Batch): string;
}

interface TurnStreamOptions {
  readonly writer: TurnWriter;
  /** Whether the first events have content: the opening is then sent with them, else at once. */
  readonly hasContent: boolean;
  /** Collects the fields of the turn for the access log. */
  readonly logFields?: TurnLogFields;
  /** Called once, at the end or when the stream is abandoned. */
  readonly onEnd?: () => void;
}

const END: Text = { value: undefined, done: true };

/**
 * The body of a stream: one text per batch, empty for a batch without content. Not a generator:
 * every token passes here.
 */
export class TurnStream implements AsyncIterableIterator<string, undefined> {
  readonly #events: AsyncIterator<Batch>;
  readonly #writer: TurnWriter;
  readonly #logFields: TurnLogFields | undefined;
  readonly #onEnd: () => void;
  /** What the next text begins with. */
  #opening: string;
  #opensAtOnce: boolean;
  #isOver = false;

  constructor(events: AsyncIterable<Batch>, { writer, hasContent, logFields, onEnd = () => {} }: TurnStreamOptions) {
    this.#events = events[Symbol.asyncIterator]();
    this.#writer = writer;
    this.#logFields = logFields;
    this.#onEnd = onEnd;
    this.#opening = writer.opening;
    this.#opensAtOnce = !hasContent;
  }

  /** Rejects if the events end without a terminal event. */
  next(): Promise<Text> {
    if (this.#opensAtOnce) {
      this.#opensAtOnce = false;
      return Promise.resolve(this.#opened(this.#writer.started ? '' : this.#writer.comment));
    }
    if (this.#isOver || this.#writer.ended) return this.return();
    return this.#events.next().then(this.#write);
  }

  async return(): Promise<Text> {
    if (this.#isOver) return END;
    this.#isOver = true;
    try {
      await this.#events.return?.();
    } finally {
      this.#onEnd();
    }
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  readonly #write = (batch: IteratorResult<Batch>): Text | Promise<Text> => {
    if (this.#isOver) return END;
    if (batch.done) return this.#endEarly();
    this.#logFields?.add(batch.value);
    const frames = this.#writer.write(batch.value);
    return frames === '' ? { value: '', done: false } : this.#opened(frames);
  };

  async #endEarly(): Promise<never> {
    await this.return();
    throw new Error('the events of a turn ended without a terminal event');
  }

  #opened(frames: string): Text {
    const value = this.#opening + frames;
    this.#opening = '';
    return { value, done: false };
  }
}

/**
 * What is sent while a stream is silent. A class, because V8 keeps the hidden class of a literal
 * with an accessor, and the stream behind it, until its next full collection.
 */
export class KeepAlive {
  /** Milliseconds. */
  readonly every: number;
  readonly #writer: TurnWriter;

  constructor(every: number, writer: TurnWriter) {
    this.every = every;
    this.#writer = writer;
  }

  get text(): string {
    return this.#writer.comment;
  }
}
