import type { AgentEvent, ModelEnd, ModelEvent, ModelToolCall } from '@plugboard/kernel';
import { NO_USAGE, type Usage } from '@plugboard/kernel';

/** Reads one model call: keeps what the loop must know, and passes on what the reader of the turn is shown. */
export class StepReader {
  usage: Usage = NO_USAGE;
  hasText = false;
  #calls: ModelToolCall[] = [];
  #end: ModelEnd | undefined;

  /** A batch of nothing but text, which most are, passes as it is. */
  take(batch: readonly ModelEvent[]): readonly AgentEvent[] {
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
        case 'tool-call':
          shown ??= batch.slice(0, i) as AgentEvent[];
          this.#calls.push(event);
          break;
        case 'end':
          this.#end = event;
          return shown ?? (batch.slice(0, i) as AgentEvent[]);
      }
    }
    return shown ?? (batch as readonly AgentEvent[]);
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Why the model stopped; `stop` before it has. */
  get reason(): ModelEnd['reason'] {
    return this.#end?.reason ?? 'stop';
  }

  /** The whole calls. An answer that was cut by its length or a filter may hold half of them: then there are none. */
  get calls(): readonly ModelToolCall[] {
    return this.reason === 'length' || this.reason === 'content_filter' ? [] : this.#calls;
  }
}
