import type { AgentEvent } from '@plugboard/kernel';
import type { AgentEvents, Failure, TurnFinished, TurnToolCall, Usage } from '@plugboard/kernel/contracts';
import { TurnLogFields } from '@plugboard/openai-protocol';

/** The fields at the beginning of every completion and chunk. */
export interface AnswerHead {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** The name from the request. */
  readonly model: string;
  readonly fingerprint: string;
}

/** The result of a completed turn. */
export interface Answer {
  /** The text of the last step. If a limit ended the turn, the last text of any step. */
  readonly text: string;
  /** Why the model does not answer, in the same step; empty if it does. */
  readonly refusal?: string;
  /** Calls of client tools, if the turn ended with them. */
  readonly toolCalls: readonly TurnToolCall[];
  readonly finished: TurnFinished;
  /** The model connection of the last step. */
  readonly connection: string | undefined;
}

/** Builds the answer of a turn from its events. */
export class AnswerBuilder {
  readonly #logFields: TurnLogFields;
  readonly #toolCalls: TurnToolCall[] = [];
  #text = '';
  #refusal = '';
  #textBefore = '';
  #connection: string | undefined;
  #end: Answer | Failure | undefined;

  constructor(logFields = new TurnLogFields()) {
    this.#logFields = logFields;
  }

  /** The answer or the failure; undefined until the turn has ended. */
  get end(): Answer | Failure | undefined {
    return this.#end;
  }

  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      switch (event.type) {
        case 'step':
          this.#logFields.step();
          this.#connection = event.connection;
          this.#textBefore = this.#text || this.#textBefore;
          this.#text = '';
          this.#refusal = '';
          break;
        case 'text':
          if (event.isRefusal) this.#refusal += event.text;
          else this.#text += event.text;
          break;
        case 'usage':
          this.#logFields.usage(event.usage);
          break;
        case 'tool-call':
          this.#logFields.toolCall();
          if (!event.tool) this.#toolCalls.push(event);
          break;
        case 'finished':
          this.#logFields.finished(event);
          this.#end = {
            text: event.limit ? this.#text || this.#textBefore : this.#text,
            refusal: this.#refusal,
            toolCalls: event.reason === 'tool_calls' ? this.#toolCalls : [],
            finished: event,
            connection: this.#connection,
          };
          break;
        case 'failed':
          this.#logFields.failed(event.failure);
          this.#end = event.failure;
          break;
      }
    }
  }
}

/** Reads a turn to its end and returns the answer or the failure. */
export async function readAnswer(events: AgentEvents, logFields: TurnLogFields): Promise<Answer | Failure> {
  const builder = new AnswerBuilder(logFields);
  for await (const batch of events) {
    builder.add(batch);
    if (builder.end) return builder.end;
  }
  throw new Error('the events of a turn ended without a terminal event');
}

/** The body of a non-streaming answer. */
export function completionOf(head: AnswerHead, { text, refusal = '', toolCalls, finished }: Answer): object {
  const calls = toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toolCallOf) };
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && (toolCalls.length > 0 || refusal !== '') ? null : text,
          refusal: refusal === '' ? null : refusal,
          annotations: [],
          ...calls,
        },
        logprobs: null,
        finish_reason: finished.reason,
      },
    ],
    usage: usageOf(finished.usage),
    service_tier: 'default',
    system_fingerprint: head.fingerprint,
  };
}

function toolCallOf({ id, name, arguments: args }: TurnToolCall): object {
  return { id, type: 'function', function: { name, arguments: args } };
}

/** The protocol's usage object. Values that are not counted are 0. */
export function usageOf({ promptTokens, completionTokens, cachedTokens, reasoningTokens }: Usage): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
