import type { Message } from '@plugboard/kernel';
import {
  type AssistantMessage,
  type ConversationTurns,
  isToolImagesMessage,
  type ToolCallPart,
} from '@plugboard/kernel/contracts';

/** What callers may see of an agent's tool calls. */
export type ToolView = Pick<ConversationTurns, 'toolVisibility' | 'toolOf'>;

const HIDDEN = '[hidden]';

/**
 * The messages of a turn as its caller may see them. `names` hides arguments and results of the
 * agent's own tools, `none` their calls. A call that was answered in its own turn was one of them,
 * even if the tool is gone.
 */
export function visibleMessages(messages: readonly Message[], { toolVisibility, toolOf }: ToolView): readonly Message[] {
  if (toolVisibility === 'full') return messages;
  const own = new Set<string>();
  const answered = new Set(messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])));
  return messages.flatMap((message, index): readonly Message[] => {
    if (isToolImagesMessage(messages, index)) return [];
    if (message.role === 'tool' && own.has(message.tool_call_id)) {
      return toolVisibility === 'names' ? [{ ...message, content: HIDDEN }] : [];
    }
    if (message.role !== 'assistant' || !message.tool_calls) return [message];
    const isOwn = (call: ToolCallPart) =>
      answered.has(call.id) || (call.type === 'function' && toolOf(call.function.name) !== undefined);
    for (const call of message.tool_calls) if (isOwn(call)) own.add(call.id);
    const calls = message.tool_calls.flatMap((call) =>
      isOwn(call) ? (toolVisibility === 'names' ? [withoutArguments(call)] : []) : [call],
    );
    const { tool_calls: _, ...rest } = message;
    if (calls.length > 0) return [{ ...rest, tool_calls: calls } satisfies AssistantMessage];
    return rest.content ? [rest] : [];
  });
}

function withoutArguments(call: ToolCallPart): ToolCallPart {
  return call.type === 'function' ? { ...call, function: { ...call.function, arguments: '{}' } } : call;
}
