import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished } from '@plugboard/kernel/contracts';

/** Collects the access log fields of a turn from its events. */
export class TurnLogFields {
  #steps = 0;
  #toolCalls = 0;
  #finished: TurnFinished | undefined;
  #failure: Failure | undefined;

  /** Collects the fields of a batch. */
  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      if (event.type === 'step') this.step();
      else if (event.type === 'tool-call') this.toolCall();
      else if (event.type === 'finished') this.finished(event);
      else if (event.type === 'failed') this.failed(event.failure);
    }
  }

  step(): void {
    this.#steps++;
  }

  toolCall(): void {
    this.#toolCalls++;
  }

  finished(event: TurnFinished): void {
    this.#finished = event;
  }

  failed(failure: Failure): void {
    this.#failure = failure;
  }

  /**
   * The fields, by their names in the log. `outcome` is needed because a stream may fail after its
   * status was sent.
   */
  fields(): Readonly<Record<string, string | number | undefined>> {
    return {
      steps: this.#steps,
      tool_calls: this.#toolCalls,
      input_tokens: this.#finished?.usage.promptTokens,
      output_tokens: this.#finished?.usage.completionTokens,
      outcome: this.#failure && outcomeOf(this.#failure),
    };
  }
}

function outcomeOf({ code }: Failure): string {
  switch (code) {
    case 'abandoned':
      return 'cancelled_by_client';
    case 'timed_out':
      return 'timeout';
    case 'draining':
    case 'stopped':
      return 'draining';
    case 'invalid_request':
    case 'session_busy':
      return 'client_error';
    default:
      return 'agent_error';
  }
}
