import type { Failure, TurnFinished } from '@plugboard/kernel';

/** What the access log is told of a turn, gathered by whoever reads its events. */
export class TurnLogFields {
  #steps = 0;
  #toolCalls = 0;
  #finished: TurnFinished | undefined;
  #failure: Failure | undefined;

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
   * By the names that the log gives them. The outcome is told because a status cannot: the head of a stream may have been sent
   * before.
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
