import type { AgentEvent } from '@plugboard/kernel';
import { isTerminal, type TurnFinished } from '@plugboard/kernel/contracts';
import type { Span } from '../diagnostics/channels.js';
import type { TurnSink } from '../streams/turn-sink.js';
import type { IdempotentTurn } from './idempotency.js';

type Batch = readonly AgentEvent[];

/**
 * The output of one turn. It guarantees the grammar of the events (`AgentEvent`): nothing follows a
 * terminal event. The idempotency record of a failure is written before readers receive it.
 */
export class TurnOutput {
  readonly #sink: TurnSink;
  readonly #span: Span;
  readonly #idempotent: IdempotentTurn | undefined;
  #end: AgentEvent | undefined;
  #toolsRan = false;

  constructor(sink: TurnSink, span: Span, idempotent: IdempotentTurn | undefined) {
    this.#sink = sink;
    this.#span = span;
    this.#idempotent = idempotent;
  }

  /** The terminal event, once it is written. */
  get end(): AgentEvent | undefined {
    return this.#end;
  }

  /** Whether a tool of the agent was called. */
  get toolsRan(): boolean {
    return this.#toolsRan;
  }

  get closed(): boolean {
    return this.#sink.closed;
  }

  /** Returns the batch without what follows its terminal event. */
  seal(batch: Batch): Batch {
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i] as AgentEvent;
      if (event.type === 'tool-call' && event.tool !== undefined) this.#toolsRan = true;
      if (isTerminal(event)) return i === batch.length - 1 ? batch : batch.slice(0, i + 1);
    }
    return batch;
  }

  /** Writes a sealed batch. Returns a promise if the turn has to wait before it continues. */
  write(batch: Batch): Promise<unknown> | undefined {
    const last = batch.at(-1);
    if (last?.type === 'failed') return this.#fail(batch, last);
    if (last?.type === 'finished') this.#finish(last);
    return this.#sink.write(batch);
  }

  #finish(event: TurnFinished): void {
    this.#end = event;
    this.#span.set({ status: event.reason, usage: event.usage });
  }

  async #fail(batch: Batch, event: AgentEvent & { type: 'failed' }): Promise<void> {
    this.#end = event;
    this.#span.set({ status: event.failure.code });
    await this.#idempotent?.fail(event);
    this.#sink.write(batch);
  }
}
