import type { Message } from '@plugboard/kernel';
import type { AssistantMessage, ContentPart, RefusalPart } from '@plugboard/kernel/contracts';
import { invalidRequest, requireString, truncate, unsupportedPart } from '@plugboard/openai-protocol';
import type { RequestMessage, RequestPart } from './request.js';

/**
 * Converts the messages of a request to the kernel's: `developer` becomes `system`, nulls and
 * unknown keys are dropped, and a content of text parts only becomes one string.
 *
 * @throws ProtocolError 400 for a missing content, a text that is too long, or a `file_id`.
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

/** Results are paired with their calls by id. */
function assertDistinctIds(calls: readonly { readonly id: string }[], i: number): void {
  const ids = new Set<string>();
  for (const [j, { id }] of calls.entries()) {
    if (ids.has(id)) {
      const param = `messages[${i}].tool_calls[${j}].id`;
      throw invalidRequest(`Duplicate value for '${param}': two tool calls have the id '${truncate(id)}'.`, { param });
    }
    ids.add(id);
  }
}

function assistantOf(message: Extract<RequestMessage, { role: 'assistant' }>, i: number): AssistantMessage {
  const { name, refusal, tool_calls, function_call, audio } = message;
  if (tool_calls && tool_calls.length > 1) assertDistinctIds(tool_calls, i);
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
  if (typeof content === 'string') return requireString(content, `messages[${i}].content`);
  for (const [j, part] of content.entries()) checkPart(part, `messages[${i}].content[${j}]`);
  return joined(content) ?? content;
}

function functionResultOf(content: string | null | undefined, i: number): string | null {
  return content == null ? null : requireString(content, `messages[${i}].content`);
}

function checkPart(part: RequestPart | RefusalPart, place: string): void {
  if (part.type === 'text') requireString(part.text, `${place}.text`);
  if (part.type === 'file' && part.file.file_id != null) {
    throw invalidRequest("Invalid 'file_id': this server does not store files. Send the file itself as 'file_data'.", {
      param: `${place}.file.file_id`,
      code: 'invalid_value',
    });
  }
}

/** Joins plain text parts without loss; returns undefined if there are other parts or fields. */
function joined(parts: readonly (RequestPart | RefusalPart)[]): string | undefined {
  let text = '';
  for (const part of parts) {
    if (part.type !== 'text' || Object.keys(part).length > 2) return undefined;
    text += part.text;
  }
  return text;
}

/**
 * Refuses content that no model connection of the agent takes. Each model call is made to fit its
 * own connection.
 *
 * @param from the messages before it are not sent to a model: the session has them already.
 * @throws ProtocolError 400 that names the first part that is not text.
 */
export function assertText(messages: readonly Message[], connection: string, from: number): void {
  for (const [i, { content }] of messages.entries()) {
    if (i < from || content === null || typeof content === 'string') continue;
    const parts: readonly (ContentPart | RefusalPart)[] = content;
    const other = parts.findIndex(({ type }) => type !== 'text' && type !== 'refusal');
    if (other >= 0) throw unsupportedPart(`messages[${i}].content[${other}]`, parts[other]?.type ?? '', connection);
  }
}
