import type { AgentEvent, AgentEvents, Failure, TurnFinished, TurnToolCall, Usage } from '@plugboard/kernel';
import { TurnLogFields } from '@plugboard/openai-protocol';

/** What stands at the beginning of every answer, whole or in chunks. */
export interface AnswerHead {
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  /** The name as it was requested. */
  readonly model: string;
  readonly fingerprint: string;
}

/** A turn that was read to its end. */
export interface Answer {
  /** Of the last step; where a budget ended the turn, the last that any step said. */
  readonly text: string;
  /** Calls for tools that the caller brought, where the turn ended with them. */
  readonly toolCalls: readonly TurnToolCall[];
  readonly finished: TurnFinished;
  /** The connection that spoke last. */
  readonly connection: string | undefined;
}

/** Gathers the answer of a turn from its events, batch by batch. */
export class AnswerFold {
  readonly #facts: TurnLogFields;
  readonly #toolCalls: TurnToolCall[] = [];
  #text = '';
  #textBefore = '';
  #connection: string | undefined;
  #end: Answer | Failure | undefined;

  constructor(facts = new TurnLogFields()) {
    this.#facts = facts;
  }

  /** The answer, or why there is none, once the turn has ended. */
  get end(): Answer | Failure | undefined {
    return this.#end;
  }

  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      switch (event.type) {
        case 'step':
          this.#facts.step();
          this.#connection = event.connection;
          this.#textBefore = this.#text || this.#textBefore;
          this.#text = '';
          break;
        case 'text':
          this.#text += event.text;
          break;
        case 'tool-call':
          this.#facts.toolCall();
          if (!event.tool) this.#toolCalls.push(event);
          break;
        case 'finished':
          this.#facts.finished(event);
          this.#end = {
            text: event.limit ? this.#text || this.#textBefore : this.#text,
            toolCalls: event.reason === 'tool_calls' ? this.#toolCalls : [],
            finished: event,
            connection: this.#connection,
          };
          break;
        case 'failed':
          this.#facts.failed(event.failure);
          this.#end = event.failure;
          break;
      }
    }
  }
}

/** Reads a turn to its end: the answer, or why there is none. */
export async function readAnswer(events: AgentEvents, facts: TurnLogFields): Promise<Answer | Failure> {
  const fold = new AnswerFold(facts);
  for await (const batch of events) {
    fold.add(batch);
    if (fold.end) return fold.end;
  }
  throw new Error('the events of a turn ended without a terminal event');
}

/** The body of an answer that is sent whole. */
export function completionOf(head: AnswerHead, { text, toolCalls, finished }: Answer): object {
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
          content: text === '' && toolCalls.length > 0 ? null : text,
          refusal: null,
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

/** The protocol's usage object. What nobody counts here is 0. */
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
