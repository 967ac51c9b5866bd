import type { Message } from '@plugboard/kernel';
import { type ContentPart, textOf, type UserMessage, type WatchedTurn } from '@plugboard/kernel/contracts';
import type { InputItem } from './request.js';

/** Prefixes of the ids of items, by type. */
const PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  mcp_call: 'mcp',
  mcp_approval_response: 'mcpar',
  reasoning: 'rs',
  compaction: 'cmp',
};

/**
 * The items of a request as `input_items` lists them: each with a type and an id, and messages with
 * parts.
 *
 * @param id of the response.
 */
export function listedItems(items: readonly InputItem[], id: string): readonly InputItem[] {
  const suffix = id.slice(id.indexOf('_') + 1);
  return items.map((item, index) => {
    const type = typeof item.type === 'string' ? item.type : 'message';
    const listed = { id: `${PREFIXES[type] ?? 'item'}_${suffix}_in${index}`, ...item, type };
    return type === 'message' ? { status: 'completed', ...listed, content: partsOf(item) } : listed;
  });
}

function partsOf({ role, content }: InputItem): unknown {
  if (typeof content !== 'string') return content;
  return role === 'assistant' ? [{ type: 'output_text', text: content, annotations: [], logprobs: [] }] : inputParts(content);
}

/** What the request of a turn said, as items of this protocol: its decisions, then its messages. */
export function turnInput({ messages, approvals }: Pick<WatchedTurn, 'messages' | 'approvals'>): readonly InputItem[] {
  const decisions = approvals.map(({ id, approve, reason = null }) => ({
    type: 'mcp_approval_response',
    approval_request_id: id,
    approve,
    reason,
  }));
  return [...decisions, ...messages.flatMap(itemOf)];
}

function itemOf(message: Message): readonly InputItem[] {
  if (message.role === 'tool') {
    const { tool_call_id: call_id, content } = message;
    return [{ type: 'function_call_output', call_id, output: textOf(content) }];
  }
  return message.role === 'user' ? [{ type: 'message', role: 'user', content: inputParts(message.content) }] : [];
}

/** The content of a user message as parts of an item. */
export function inputParts(content: UserMessage['content']): readonly object[] {
  return typeof content === 'string' ? [{ type: 'input_text', text: content }] : content.map(inputPart);
}

function inputPart(part: ContentPart): object {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: part.image_url.detail ?? 'auto', file_id: null };
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio };
    case 'file':
      return { type: 'input_file', ...part.file };
    case 'video_url': // items have no videos
      return { type: 'input_file', file_url: part.video_url.url };
  }
}
