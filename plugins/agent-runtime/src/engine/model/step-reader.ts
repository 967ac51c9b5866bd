import type { AgentEvent, ModelEvent } from '@plugboard/kernel';
import { ModelError } from '@plugboard/kernel';
import type { ModelEnd, ModelToolCall } from '@plugboard/kernel/contracts';
import { NO_USAGE, SHAPE_LIMITS, type Usage } from '@plugboard/kernel/contracts';
import type { StreamedCalls } from './streamed-calls.js';

function tooManyCalls(): ModelError {
  return new ModelError(`its answer has more than ${SHAPE_LIMITS.calls} tool calls.`, { retryable: false });
}

/**
 * Reads one model call: collects what the loop needs and returns the events for the readers of the
 * turn.
 */
export class StepReader {
  usage: Usage = NO_USAGE;
  hasText = false;
  /** The connection that answers; empty before it has begun. */
  connection = '';
  #calls: ModelToolCall[] = [];
  #end: ModelEnd | undefined;
  readonly #onRead: (batch: readonly ModelEvent[]) => void;
  readonly #streamed: StreamedCalls | undefined;

  /**
   * @param onRead receives each batch before it is held. May throw.
   * @param streamed the calls that the readers see early, if there may be any.
   */
  constructor(onRead: (batch: readonly ModelEvent[]) => void = () => {}, streamed?: StreamedCalls) {
    this.#onRead = onRead;
    this.#streamed = streamed;
  }

  /**
   * Returns a batch of text unchanged.
   *
   * @throws ModelError if a call is another than it began, or for too many calls.
   */
  take(batch: readonly ModelEvent[]): readonly AgentEvent[] {
    this.#onRead(batch);
    let shown: AgentEvent[] | undefined;
    for (let i = 0; i < batch.length; i++) {
      const event = batch[i] as ModelEvent;
      switch (event.type) {
        case 'text':
          this.hasText = true;
          shown?.push(event);
          break;
        case 'reasoning':
          shown?.push(event);
          break;
        case 'usage':
          this.usage = event.usage;
          shown?.push(event);
          break;
        case 'tool-call-delta': {
          shown ??= batch.slice(0, i) as AgentEvent[];
          const delta = this.#streamed?.add(event);
          if (delta) shown.push(delta);
          break;
        }
        case 'tool-call':
          shown ??= batch.slice(0, i) as AgentEvent[];
          if (this.#calls.push(event) > SHAPE_LIMITS.calls) throw tooManyCalls();
          break;
        case 'end':
          this.#end = event;
          if (!this.#isCut) this.#streamed?.check(this.#calls);
          return shown ?? (batch.slice(0, i) as AgentEvent[]);
      }
    }
    return shown ?? (batch as readonly AgentEvent[]);
  }

  /** Like `take`, for one read from the connector. @throws ModelError if the answer was cut off. */
  takeNext(result: IteratorResult<readonly ModelEvent[], unknown>): readonly AgentEvent[] {
    if (result.done) throw new ModelError('its answer was cut off.', { retryable: true });
    return this.take(result.value);
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether the connection attached data to its message or to a call. */
  get hasExtra(): boolean {
    return this.extra !== undefined || this.#calls.some(({ extra }) => extra !== undefined);
  }

  /** The data that the connection attached to its message. */
  get extra(): unknown {
    return this.#end?.extra;
  }

  /** Why the model stopped; `stop` until it has. */
  get reason(): ModelEnd['reason'] {
    return this.#end?.reason ?? 'stop';
  }

  /** What the model server named at the end: its own finish reason, the stop sequence. */
  get named(): Pick<ModelEnd, 'rawReason' | 'stopSequence'> {
    const { rawReason, stopSequence } = this.#end ?? {};
    return { ...(rawReason !== undefined && { rawReason }), ...(stopSequence !== undefined && { stopSequence }) };
  }

  /**
   * The complete tool calls. None if length or a filter cut the answer, since calls may then be
   * incomplete.
   */
  get calls(): readonly ModelToolCall[] {
    return this.#isCut ? [] : this.#calls;
  }

  get #isCut(): boolean {
    return this.reason === 'length' || this.reason === 'content_filter';
  }
}
