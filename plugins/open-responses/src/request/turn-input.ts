import type { Message } from '@plugboard/kernel';
import { type ContentPart, textOf, type WatchedTurn } from '@plugboard/kernel/contracts';
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
  if (message.role !== 'user') return [];
  const { content } = message;
  return [{ type: 'message', role: 'user', content: typeof content === 'string' ? content : content.map(partOf) }];
}

function partOf(part: ContentPart): object {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image_url':
      return { type: 'input_image', image_url: part.image_url.url, detail: part.image_url.detail ?? 'auto' };
    case 'input_audio':
      return part;
    case 'file':
      return { type: 'input_file', ...part.file };
    case 'video_url':
      return { type: 'input_file', file_url: part.video_url.url };
  }
}
