import type { Message } from '@plugboard/kernel';
import {
  type AssistantMessage,
  type ConversationTurns,
  isToolImagesMessage,
  type StoredTurn,
  type ToolCallPart,
  type ToolMessage,
  textOf,
  type UserMessage,
} from '@plugboard/kernel/contracts';
import { inputParts, outputParts } from './content-parts.js';
import type { Item, McpCallItem } from './item.js';
import { type ItemPlace, itemId } from './item-id.js';

/** What of a conversation may be shown. */
export interface ItemView extends Pick<ConversationTurns, 'toolVisibility' | 'toolOf'> {
  /** The conversation id. */
  readonly conversation: string;
}

/** Converts a turn to items, in order. */
export function itemsOf({ turn, messages }: StoredTurn, view: ItemView): readonly Item[] {
  return messages.flatMap((message, index) =>
    itemsOfMessage(message, messages, { conversation: view.conversation, turn, message: index }, view),
  );
}

function itemsOfMessage(message: Message, messages: readonly Message[], at: ItemPlace, view: ItemView): readonly Item[] {
  switch (message.role) {
    case 'system':
      return [];
    case 'user':
      return userItems(message, messages, at, view);
    case 'assistant':
      return [...assistantItems(message, at), ...callItems(message, messages, at, view)];
    case 'tool':
      return resultItems(message, messages, at, view);
    case 'function': // the protocol's old function calls have no id; the name is used instead, here and below
      return [output(at, message.name, textOf(message.content))];
  }
}

function userItems({ content }: UserMessage, messages: readonly Message[], at: ItemPlace, view: ItemView): Item[] {
  const isTools = isToolImagesMessage(messages, at.message);
  if (isTools && view.toolVisibility !== 'full') return [];
  const role = isTools ? 'tool' : 'user';
  return [{ id: itemId('msg', at), type: 'message', role, status: 'completed', content: inputParts(content) }];
}

function assistantItems(message: AssistantMessage, at: ItemPlace): Item[] {
  const content = outputParts(message);
  if (content.length === 0 && (message.tool_calls || message.function_call)) return [];
  return [{ id: itemId('msg', at), type: 'message', role: 'assistant', status: 'completed', content }];
}

function callItems(message: AssistantMessage, messages: readonly Message[], at: ItemPlace, view: ItemView): Item[] {
  const { tool_calls: calls = [], function_call: old } = message;
  const items = calls.flatMap((call, index) => itemsOfCall(call, messages, { ...at, call: index }, view));
  if (old) items.push(functionCall({ ...at, call: calls.length }, old.name, old));
  return items;
}

function itemsOfCall(call: ToolCallPart, messages: readonly Message[], at: ItemPlace, view: ItemView): Item[] {
  if (call.type === 'custom') {
    return [{ id: itemId('ctc', at), type: 'custom_tool_call', call_id: call.id, ...call.custom }];
  }
  const result = resultOf(call.id, messages, at.message);
  const tool = agentTool(call, result, view);
  if (!tool) return [functionCall(at, call.id, call.function)];
  if (view.toolVisibility === 'none') return [];
  const shown: McpCallItem = {
    id: itemId('mcp', at),
    type: 'mcp_call',
    server_label: tool.entry,
    name: tool.name,
    arguments: '',
    output: null,
    error: null,
    status: result ? 'completed' : 'incomplete',
  };
  if (view.toolVisibility === 'names') return [shown];
  return [{ ...shown, arguments: call.function.arguments, output: result ? textOf(result.content) : null }];
}

/** The result of an agent's tool is part of the item of its call. */
function resultItems(message: ToolMessage, messages: readonly Message[], at: ItemPlace, view: ItemView): Item[] {
  const call = callOf(message.tool_call_id, messages, at.message);
  if (call?.type === 'function' && agentTool(call, message, view)) return [];
  const text = textOf(message.content);
  if (call?.type !== 'custom') return [output(at, message.tool_call_id, text)];
  return [{ id: itemId('ctco', at), type: 'custom_tool_call_output', call_id: call.id, output: text }];
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
): { readonly entry: string; readonly name: string } | undefined {
  return toolOf(name) ?? (result && toolVisibility !== 'full' ? { entry: '', name } : undefined);
}

/** Finds the result of a call in the same turn: results directly follow their calls. */
function resultOf(id: string, messages: readonly Message[], from: number): ToolMessage | undefined {
  for (let index = from + 1; ; index++) {
    const message = messages[index];
    if (message?.role !== 'tool') return undefined;
    if (message.tool_call_id === id) return message;
  }
}

/** Finds the call of a result in the same turn. */
function callOf(id: string, messages: readonly Message[], from: number): ToolCallPart | undefined {
  const asking = messages.slice(0, from).findLast(({ role }) => role !== 'tool');
  return asking?.role === 'assistant' ? asking.tool_calls?.find((call) => call.id === id) : undefined;
}

function functionCall(at: ItemPlace, call_id: string, { name, arguments: text }: { name: string; arguments: string }): Item {
  return { id: itemId('fc', at), type: 'function_call', status: 'completed', call_id, name, arguments: text };
}

function output(at: ItemPlace, call_id: string, text: string): Item {
  return { id: itemId('fco', at), type: 'function_call_output', status: 'completed', call_id, output: text };
}
