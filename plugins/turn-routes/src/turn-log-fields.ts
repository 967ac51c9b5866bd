import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished } from '@plugboard/kernel/contracts';

/** Collects the access log fields of a turn from its events. */
export class TurnLogFields {
  #steps = 0;
  /** The model calls whose prompt was counted. */
  #counted = 0;
  #isCounted = false;
  #toolCalls = 0;
  #finished: TurnFinished | undefined;
  #failure: Failure | undefined;

  /** Collects the fields of a batch. */
  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      if (event.type === 'step') {
        this.#steps++;
        this.#isCounted = false;
      } else if (event.type === 'usage') {
        // Later counts of the same step replace the first.
        if (event.usage.promptTokens > 0 && !this.#isCounted) this.#counted++;
        this.#isCounted ||= event.usage.promptTokens > 0;
      } else if (event.type === 'tool-call') this.#toolCalls++;
      else if (event.type === 'finished') this.#finished = event;
      else if (event.type === 'failed') this.#failure = event.failure;
    }
  }

  /**
   * The fields, by their names in the log. `outcome` is needed because a stream may fail after its
   * status was sent.
   */
  fields(): Readonly<Record<string, string | number | boolean | undefined>> {
    const { usage, rawReason } = this.#finished ?? {};
    return {
      steps: this.#steps,
      tool_calls: this.#toolCalls,
      input_tokens: usage?.promptTokens,
      output_tokens: usage?.completionTokens,
      // Every request has tokens: none means that the model server did not count them.
      usage_known: usage !== undefined && this.#counted < this.#steps ? false : undefined,
      finish_reason: rawReason,
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
