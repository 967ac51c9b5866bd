import type { Message } from '@plugboard/kernel';
import { type ContentPart, textOf, type UserMessage, type WatchedTurn } from '@plugboard/kernel/contracts';
import type { InputItem } from './request.js';

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
