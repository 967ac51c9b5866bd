import type { AssistantMessage, ContentPart, Message, RefusalPart } from '@plugboard/kernel';
import { invalidRequest, notText, textAt } from '@plugboard/openai-protocol';
import type { RequestMessage, RequestPart } from './request.js';

/**
 * The kernel's messages, made of a request's: `developer` is `system`, what is null is left out, and so are keys that no message
 * has. Parts go through unchanged, but a content of nothing but text is one string.
 *
 * @throws ProtocolError 400 where a content is missing, a text too long, or a file is named that nobody has.
 */
export function conversationOf(messages: readonly RequestMessage[]): readonly Message[] {
  return messages.map(messageOf);
}

function messageOf(message: RequestMessage, i: number): Message {
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: contentOf(message.content, i), ...nameOf(message.name) };
    case 'user':
      return { role: 'user', content: contentOf(message.content, i), ...nameOf(message.name) };
    case 'assistant':
      return assistantOf(message, i);
    case 'tool':
      return { role: 'tool', content: contentOf(message.content, i), tool_call_id: message.tool_call_id };
    case 'function':
      return { role: 'function', content: functionResultOf(message.content, i), name: message.name };
  }
}

function assistantOf(message: Extract<RequestMessage, { role: 'assistant' }>, i: number): AssistantMessage {
  const { name, refusal, tool_calls, function_call, audio } = message;
  const beside = {
    ...nameOf(name),
    ...(refusal == null ? {} : { refusal }),
    ...(tool_calls == null || tool_calls.length === 0 ? {} : { tool_calls }),
    ...(function_call == null ? {} : { function_call }),
    ...(audio == null ? {} : { audio }),
  };
  const mayBeNull = 'refusal' in beside || 'tool_calls' in beside || 'function_call' in beside || 'audio' in beside;
  const content = message.content == null && mayBeNull ? null : contentOf(message.content, i);
  return { role: 'assistant', content, ...beside };
}

function nameOf(name: string | null | undefined): { readonly name?: string } {
  return name == null ? {} : { name };
}

function contentOf<P extends RequestPart | RefusalPart>(
  content: string | readonly P[] | null | undefined,
  i: number,
): string | readonly P[] {
  if (content == null) {
    throw invalidRequest("Invalid value for 'content': expected a string, got null.", { param: `messages.[${i}].content` });
  }
  if (typeof content === 'string') return textAt(content, `messages[${i}].content`);
  for (const [j, part] of content.entries()) checkPart(part, `messages[${i}].content[${j}]`);
  return joined(content) ?? content;
}

function functionResultOf(content: string | null | undefined, i: number): string | null {
  return content == null ? null : textAt(content, `messages[${i}].content`);
}

function checkPart(part: RequestPart | RefusalPart, place: string): void {
  if (part.type === 'text') textAt(part.text, `${place}.text`);
  if (part.type === 'file' && part.file.file_id != null) {
    throw invalidRequest("Invalid 'file_id': this server keeps no files. Send the file itself as 'file_data'.", {
      param: `${place}.file.file_id`,
      code: 'invalid_value',
    });
  }
}

/** The text of parts that hold nothing else, so that joining them loses nothing; undefined for others. */
function joined(parts: readonly (RequestPart | RefusalPart)[]): string | undefined {
  let text = '';
  for (const part of parts) {
    if (part.type !== 'text' || Object.keys(part).length > 2) return undefined;
    text += part.text;
  }
  return text;
}

/**
 * The same messages for a connection that takes nothing but text: their text parts are joined.
 *
 * @throws ProtocolError 400 that names the first part of a user message that is no text.
 */
export function textOnly(messages: readonly Message[], connection: string): readonly Message[] {
  return messages.map((message, i) => {
    if (message.content === null || typeof message.content === 'string') return message;
    const parts: readonly (ContentPart | RefusalPart)[] = message.content;
    const content = parts
      .map((part, j) => {
        if (part.type === 'text') return part.text;
        if (part.type === 'refusal') return part.refusal;
        throw notText(`messages[${i}].content[${j}]`, part.type, connection);
      })
      .join('');
    return { ...message, content };
  });
}
