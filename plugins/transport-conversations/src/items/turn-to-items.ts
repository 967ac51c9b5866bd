import type { Message } from '@plugboard/kernel';
import {
  type AssistantMessage,
  type ConversationTurns,
  isToolImagesMessage,
  type ToolCallPart,
  type ToolMessage,
  type TurnRecord,
  textOf,
  type UserMessage,
} from '@plugboard/kernel/contracts';
import { inputParts } from '@plugboard/open-responses';
import type { Item } from './item.js';
import { type ItemPlace, itemId } from './item-id.js';
import { outputParts } from './output-parts.js';
import { type CallRecord, TurnIndex } from './turn-index.js';

/** A turn of a conversation, as it is stored. */
export type ConversationTurn = ConversationTurns['turns'][number];

/** What of a conversation may be shown. */
export interface ItemView extends Pick<ConversationTurns, 'toolVisibility' | 'toolOf'> {
  /** The conversation id. */
  readonly conversation: string;
}

/** The turn whose items are made. */
interface TurnView extends ItemView {
  readonly messages: readonly Message[];
  readonly record: TurnRecord | undefined;
  readonly index: TurnIndex;
}

/** The tool of a call: its entry and its own name. */
interface ServerTool {
  readonly entry: string;
  readonly name: string;
}

/** Converts a turn to items, in order. */
export function itemsOf({ turn, messages, record }: ConversationTurn, { conversation, ...shown }: ItemView): readonly Item[] {
  const view = { conversation, ...shown, messages, record, index: new TurnIndex(messages, record) };
  return messages.flatMap((message, index) => itemsOfMessage(message, { conversation, turn, message: index }, view));
}

function itemsOfMessage(message: Message, at: ItemPlace, view: TurnView): readonly Item[] {
  switch (message.role) {
    case 'system':
      return [];
    case 'user':
      return userItems(message, at, view);
    case 'assistant':
      return [...reasoningItems(at, view), ...assistantItems(message, at), ...callItems(message, at, view)];
    case 'tool':
      return resultItems(message, at, view);
    case 'function': // the protocol's old function calls have no id; the name is used instead, here and below
      return [output(at, message.name, textOf(message.content))];
  }
}

function userItems({ content }: UserMessage, at: ItemPlace, view: TurnView): Item[] {
  const isTools = isToolImagesMessage(view.messages, at.message);
  if (isTools && view.toolVisibility !== 'full') return [];
  const role = isTools ? 'tool' : 'user';
  return [{ id: itemId('msg', at), type: 'message', role, status: 'completed', content: inputParts(content) }];
}

/** The last messages of the model are those of the steps, one each. */
function reasoningItems(at: ItemPlace, { record, index, toolVisibility }: TurnView): Item[] {
  if (!record || toolVisibility !== 'full') return [];
  const text = record.steps.at(-index.answersLeft(at.message))?.reasoning;
  if (text === undefined) return [];
  return [{ id: itemId('rs', at), type: 'reasoning', status: 'completed', summary: [{ type: 'summary_text', text }] }];
}

function assistantItems(message: AssistantMessage, at: ItemPlace): Item[] {
  const content = outputParts(message);
  if (content.length === 0 && (message.tool_calls || message.function_call)) return [];
  return [{ id: itemId('msg', at), type: 'message', role: 'assistant', status: 'completed', content }];
}

function callItems(message: AssistantMessage, at: ItemPlace, view: TurnView): Item[] {
  const { tool_calls: calls = [], function_call: old } = message;
  const items = calls.flatMap((call, index) => itemsOfCall(call, { ...at, call: index }, view));
  if (old) items.push(functionCall({ ...at, call: calls.length }, old.name, old));
  return items;
}

function itemsOfCall(call: ToolCallPart, at: ItemPlace, view: TurnView): Item[] {
  if (call.type === 'custom') {
    return [{ id: itemId('ctc', at), type: 'custom_tool_call', call_id: call.id, ...call.custom }];
  }
  const result = view.index.resultOf(call.id, at.message);
  const known = view.index.recordOf(call.id);
  const tool = known?.tool ?? agentTool(call, result, view);
  if (!tool) return [functionCall(at, call.id, call.function)];
  if (known?.state === 'waiting' && known.approval !== undefined)
    return [approvalRequest(known.approval, tool, known.arguments ?? call.function.arguments, view)];
  return mcpCall(itemId('mcp', at), tool, call.function.arguments, result, known, view);
}

/** A call of an agent's tool with its result. */
function mcpCall(
  id: string,
  tool: ServerTool,
  text: string,
  result: ToolMessage | undefined,
  known: CallRecord | undefined,
  { toolVisibility }: TurnView,
): Item[] {
  if (toolVisibility === 'none') return [];
  const isFull = toolVisibility === 'full';
  const hasFailed = known?.state === 'failed' || known?.state === 'unknown';
  const answer = isFull && result ? textOf(result.content) : null;
  const item = {
    id,
    type: 'mcp_call',
    server_label: tool.entry,
    name: tool.name,
    arguments: isFull ? text : '',
    output: hasFailed ? null : answer,
    error: hasFailed ? toolError(answer ?? 'The tool call failed.') : null,
    status: hasFailed ? 'failed' : result ? 'completed' : 'incomplete',
    approval_request_id: known?.approval ?? null,
  };
  return [item];
}

function toolError(text: string) {
  return { type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] };
}

function approvalRequest(id: string, tool: ServerTool, text: string, { toolVisibility }: TurnView): Item {
  const isHidden = toolVisibility === 'none';
  return {
    id,
    type: 'mcp_approval_request',
    server_label: isHidden ? '' : tool.entry,
    name: isHidden ? '' : tool.name,
    arguments: toolVisibility === 'full' ? text : '',
  };
}

/** The result of an agent's tool is part of the item of its call. */
function resultItems(message: ToolMessage, at: ItemPlace, view: TurnView): Item[] {
  const call = view.index.callOf(message.tool_call_id, at.message);
  if (call?.type === 'function' && (view.index.recordOf(call.id)?.tool ?? agentTool(call, message, view))) return [];
  const text = textOf(message.content);
  if (call?.type === 'custom')
    return [{ id: itemId('ctco', at), type: 'custom_tool_call_output', call_id: call.id, output: text }];
  if (call) return [output(at, message.tool_call_id, text)];
  return earlierItems(message, at, view) ?? [output(at, message.tool_call_id, text)];
}

/**
 * The decision about a call of an earlier turn, and the call, if it was approved; the call alone,
 * if its process died. Undefined if the result is another.
 */
function earlierItems(message: ToolMessage, at: ItemPlace, view: TurnView): Item[] | undefined {
  const known = view.index.recordOf(message.tool_call_id);
  const decision = view.index.decisionOf(message.tool_call_id);
  const call = known?.tool && mcpCall(itemId('mcp', at), known.tool, known.arguments ?? '', message, known, view);
  if (!decision) return call;
  const { approval, approve, by, reason = by === 'person' ? null : textOf(message.content) } = decision;
  const decided = {
    id: itemId('mcpar', at),
    type: 'mcp_approval_response',
    approval_request_id: approval,
    approve,
    reason,
  };
  return [decided, ...(call ?? [])];
}

/**
 * The agent tool that was called; undefined for a client tool. Results of client tools arrive in a
 * later turn. A call answered in its own turn ran here, or was sent by a caller as part of a
 * conversation: unless everything may be shown, it is treated as a tool that was removed since.
 */
function agentTool(
  { function: { name } }: Extract<ToolCallPart, { type: 'function' }>,
  result: ToolMessage | undefined,
  { toolOf, toolVisibility }: ItemView,
): ServerTool | undefined {
  return toolOf(name) ?? (result && toolVisibility !== 'full' ? { entry: '', name } : undefined);
}

function functionCall(at: ItemPlace, call_id: string, { name, arguments: text }: { name: string; arguments: string }): Item {
  return { id: itemId('fc', at), type: 'function_call', status: 'completed', call_id, name, arguments: text };
}

function output(at: ItemPlace, call_id: string, text: string): Item {
  return { id: itemId('fco', at), type: 'function_call_output', status: 'completed', call_id, output: text };
}
