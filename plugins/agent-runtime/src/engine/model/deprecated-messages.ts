import type { Message } from '@plugboard/kernel';
import type { AssistantMessage } from '@plugboard/kernel/contracts';

/**
 * Replaces what few model servers still take: a function call by a tool call, its result by that
 * of a tool, and the id of spoken audio by nothing, since only its own server knows it, for an
 * hour. Returns the list itself if it has none.
 */
export function withoutDeprecated(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isDeprecated)) return messages;
  return messages.map((message, index) => {
    if (message.role === 'assistant' && isDeprecated(message)) return modernAnswer(message, messages[index + 1]);
    return message.role === 'function' ? modernResult(message, messages[index - 1]) : message;
  });
}

function isDeprecated(message: Message): boolean {
  if (message.role === 'assistant') return message.function_call !== undefined || message.audio !== undefined;
  return message.role === 'function';
}

/** A call without its result is left out: servers refuse it. */
function modernAnswer({ function_call, audio, ...message }: AssistantMessage, next: Message | undefined): Message {
  const { content, refusal, tool_calls } = message;
  if (function_call !== undefined && next?.role === 'function' && !tool_calls)
    return { ...message, tool_calls: [{ id: idOf(function_call.name), type: 'function', function: function_call }] };
  return content === null && refusal === undefined && !tool_calls ? { ...message, content: '' } : message;
}

/** A result without its call is a text. */
function modernResult({ name, content }: Extract<Message, { role: 'function' }>, before: Message | undefined): Message {
  const text = content ?? '';
  if (before?.role === 'assistant' && before.function_call && !before.tool_calls)
    return { role: 'tool', tool_call_id: idOf(before.function_call.name), content: text };
  return { role: 'user', content: `${name}: ${text}` };
}

function idOf(name: string): string {
  return `function_${name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 48)}`;
}
