import type { AgentEvents, Failure, TurnFinished, TurnToolCall, Usage } from '@plugboard/kernel';
import type { TurnFacts } from './turn-facts.js';

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

/** Reads a turn to its end: the answer, or why there is none. */
export async function readAnswer(events: AgentEvents, facts: TurnFacts): Promise<Answer | Failure> {
  let text = '';
  let textBefore = '';
  let connection: string | undefined;
  const toolCalls: TurnToolCall[] = [];
  for await (const batch of events) {
    for (const event of batch) {
      switch (event.type) {
        case 'step':
          facts.step();
          connection = event.connection;
          textBefore = text || textBefore;
          text = '';
          break;
        case 'text':
          text += event.text;
          break;
        case 'tool-call':
          facts.toolCall();
          if (!event.tool) toolCalls.push(event);
          break;
        case 'finished':
          facts.finished(event);
          return {
            text: event.limit ? text || textBefore : text,
            toolCalls: event.reason === 'tool_calls' ? toolCalls : [],
            finished: event,
            connection,
          };
        case 'failed':
          facts.failed(event.failure);
          return event.failure;
      }
    }
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
