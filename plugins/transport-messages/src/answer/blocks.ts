import type { AgentEvent } from '@plugboard/kernel';
import type { Target, TurnFinished, TurnToolCall, TurnToolResult, Usage } from '@plugboard/kernel/contracts';
import { parseJson } from '@plugboard/kernel/contracts';
import type { ExtrasCollector, ExtrasSeal } from '@plugboard/turn-routes';

/** The block that carries the sealed extras of a step. */
interface SealedBlock {
  readonly type: 'redacted_thinking';
  readonly data: string;
}

/** A block of the content of an answer. */
export type AnswerBlock =
  | SealedBlock
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object }
  | {
      readonly type: 'mcp_tool_use';
      readonly id: string;
      readonly name: string;
      readonly server_name: string;
      readonly input: object;
    }
  | {
      readonly type: 'mcp_tool_result';
      readonly tool_use_id: string;
      readonly is_error: boolean;
      readonly content: readonly { readonly type: 'text'; readonly text: string }[];
    };

/** What an answer shows besides its text and the calls of the client's tools. */
export interface Visibility {
  readonly thinking: boolean;
  /** Seals what the client keeps of the model's thinking; undefined if it takes no such blocks. */
  readonly seal?: ExtrasSeal | undefined;
  /** Of the agent's own tools. */
  readonly tools: Target['toolVisibility'];
}

/** The block of an answer that ends in calls of the client, if there is something to seal. */
export function sealedBlock(extras: ExtrasCollector, { reason }: TurnFinished): SealedBlock | undefined {
  const data = reason === 'tool_calls' ? extras.sealed : undefined;
  return data === undefined ? undefined : { type: 'redacted_thinking', data };
}

/** The beginning of an answer. */
export interface AnswerHead {
  readonly id: string;
  /** The name from the request. */
  readonly model: string;
}

/** Why an answer ended, in the words of the protocol. */
export type StopReason = 'end_turn' | 'stop_sequence' | 'tool_use' | 'max_tokens' | 'refusal';

const STOP_REASONS: Readonly<Record<TurnFinished['reason'], StopReason>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
};

/** How an answer ended, as it is sent. */
export interface Stop {
  readonly stop_reason: StopReason;
  readonly stop_sequence: string | null;
}

/** @param refused whether the last step says why the model does not answer. */
export function stopOf({ reason, stopSequence }: TurnFinished, refused: boolean): Stop {
  if (reason !== 'stop') return { stop_reason: STOP_REASONS[reason], stop_sequence: null };
  if (refused) return { stop_reason: 'refusal', stop_sequence: null };
  return { stop_reason: stopSequence === undefined ? 'end_turn' : 'stop_sequence', stop_sequence: stopSequence ?? null };
}

/** The usage of all model calls. The protocol counts tokens of the cache apart. */
export function usageOf({ promptTokens, completionTokens, cachedTokens, cacheWriteTokens }: Usage): object {
  return {
    input_tokens: Math.max(0, promptTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
  };
}

/** Whether an event makes a part of an answer. */
export function isVisible(event: AgentEvent, { thinking, tools }: Visibility): boolean {
  switch (event.type) {
    case 'text':
      return (event.json ?? event.text) !== '';
    case 'reasoning':
      return thinking && event.text !== '';
    case 'tool-call-delta':
      return true;
    case 'tool-call':
      return event.tool === undefined || tools !== 'none';
    case 'tool-result':
      return tools !== 'none';
    default:
      return false;
  }
}

/** The block of a call. The visibility `names` hides the arguments of the agent's own tools. */
export function callBlock({ id, name, arguments: text, tool }: TurnToolCall, { tools }: Visibility): AnswerBlock {
  if (!tool) return { type: 'tool_use', id, name, input: inputOf(text) };
  const input = tools === 'full' ? inputOf(text) : {};
  return { type: 'mcp_tool_use', id, name: tool.name, server_name: tool.entry, input };
}

/** The block of a result of one of the agent's own tools. */
export function resultBlock({ id, content, isError }: TurnToolResult, { tools }: Visibility): AnswerBlock {
  const shown = tools === 'full' ? [{ type: 'text' as const, text: content }] : [];
  return { type: 'mcp_tool_result', tool_use_id: id, is_error: isError, content: shown };
}

/** Arguments must be an object: anything else is wrapped as the protocol does. */
function inputOf(text: string): object {
  if (text.trim() === '') return {};
  try {
    const value = parseJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // not JSON
  }
  return { INVALID_JSON: text };
}
