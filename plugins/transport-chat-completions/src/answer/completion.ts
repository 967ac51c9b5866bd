import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, TurnFinished, TurnToolCall, Usage } from '@plugboard/kernel/contracts';
import type { AnswerFold } from '@plugboard/turn-routes';

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
export class AnswerBuilder implements AnswerFold {
  readonly #keepsSteps: boolean;
  readonly #toolCalls: TurnToolCall[] = [];
  #text = '';
  /** What the server says. If it asks for approval, the model's words are left out (S-74). */
  #notice = '';
  #asks = false;
  #refusal = '';
  #textBefore = '';
  #connection: string | undefined;
  #end: Answer | Failure | undefined;

  /** @param keepsSteps whether the texts of all steps are the answer, separated as in a stream. */
  constructor(keepsSteps = false) {
    this.#keepsSteps = keepsSteps;
  }

  get end(): Answer | Failure | undefined {
    return this.#end;
  }

  add(batch: readonly AgentEvent[]): void {
    for (const event of batch) {
      switch (event.type) {
        case 'step':
          this.#connection = event.connection;
          this.#textBefore = this.#text || this.#textBefore;
          this.#text = '';
          this.#refusal = '';
          break;
        case 'text':
          if (event.isNotice) this.#notice += (this.#notice && '\n\n') + event.text;
          else if (event.isRefusal) this.#refusal += event.text;
          else if (event.text !== '') this.#text += this.#separator + event.text;
          break;
        case 'approval':
          this.#asks = true;
          break;
        case 'tool-call':
          if (!event.tool) this.#toolCalls.push(event);
          break;
        case 'finished':
          this.#end = this.#answer(event);
          break;
        case 'failed':
          this.#end = event.failure;
          break;
      }
    }
  }

  /** Stands before the first text of a step, if the answer has texts of earlier ones. */
  get #separator(): string {
    return this.#keepsSteps && this.#text === '' && this.#textBefore !== '' ? `${this.#textBefore}\n\n` : '';
  }

  #answer(finished: TurnFinished): Answer {
    const said = finished.limit || this.#keepsSteps ? this.#text || this.#textBefore : this.#text;
    return {
      text: [this.#notice, this.#asks ? '' : said].filter((text) => text !== '').join('\n\n'),
      refusal: this.#refusal,
      toolCalls: finished.reason === 'tool_calls' ? this.#toolCalls : [],
      finished,
      connection: this.#connection,
    };
  }
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

/**
 * The protocol's usage object. Values that are not counted are 0: an answer that is sent again may
 * be older than a count.
 */
export function usageOf(usage: Usage): object {
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens = 0, reasoningTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
