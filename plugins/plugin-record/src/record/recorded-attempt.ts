import type { ModelEvent } from '@plugboard/kernel';
import type { ModelCall } from '@plugboard/kernel/contracts';
import type { Attempt, RecordedError } from '../format/recording.js';
import { recordedError } from './recorded-error.js';

/** Collects one attempt at a model connection. */
export class RecordedAttempt {
  readonly #call: ModelCall;
  readonly #events: ModelEvent[] = [];
  readonly #started: number;
  #ended: number | undefined;
  #error: RecordedError | undefined;

  /** @param now of the monotonic clock. */
  constructor(call: ModelCall, now: number) {
    this.#call = call;
    this.#started = now;
  }

  /**
   * Texts that follow each other become one. Pieces of calls are left out: the calls come whole.
   */
  add(event: ModelEvent): void {
    if (event.type === 'tool-call-delta') return;
    const last = this.#events.at(-1);
    if (event.type === 'text') {
      const { text, isRefusal } = event;
      if (last?.type === 'text' && last.isRefusal === isRefusal) this.#events.pop();
      const before = last?.type === 'text' && last.isRefusal === isRefusal ? last.text : '';
      this.#events.push({ type: 'text', text: before + text, ...(isRefusal && { isRefusal }) });
    } else if (event.type === 'reasoning' && last?.type === 'reasoning') {
      this.#events[this.#events.length - 1] = { type: 'reasoning', text: last.text + event.text };
    } else this.#events.push(event);
  }

  fail(error: unknown): void {
    this.#error = recordedError(error);
  }

  end(now: number): void {
    this.#ended ??= now;
  }

  /** The attempt so far. */
  attempt(now: number): Attempt {
    const { step, attempt, connection, model, request } = this.#call;
    const { messages, tools, params } = request;
    const milliseconds = Math.round((this.#ended ?? now) - this.#started);
    return { step, attempt, connection, model, messages, tools, params, events: this.#events, error: this.#error, milliseconds };
  }
}
