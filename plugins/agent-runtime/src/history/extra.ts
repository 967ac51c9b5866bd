import type { Message } from '@plugboard/kernel';
import type { AssistantMessage, Extra, FunctionCallPart, ToolCallPart } from '@plugboard/kernel/contracts';

/** Messages for a request to a connection: without the extras of others. */
export function withOwnExtras(messages: readonly Message[], connection: string): readonly Message[] {
  return filterExtras(messages, (extra) => extra.connection === connection);
}

/** Messages without extras, as a caller may send them. */
export function withoutExtras(messages: readonly Message[]): readonly Message[] {
  return filterExtras(messages, () => false);
}

/** Returns the list itself if it stays the same. */
function filterExtras(messages: readonly Message[], keep: (extra: Extra) => boolean): readonly Message[] {
  const isForeign = ({ extra }: { readonly extra?: Extra }) => extra !== undefined && !keep(extra);
  const hasForeign = (message: Message) =>
    message.role === 'assistant' && (isForeign(message) || (message.tool_calls ?? []).some(isForeign));
  if (!messages.some(hasForeign)) return messages;
  return messages.map((message) => {
    if (message.role !== 'assistant' || !hasForeign(message)) return message;
    const own: AssistantMessage = isForeign(message) ? without(message) : message;
    return own.tool_calls ? { ...own, tool_calls: own.tool_calls.map((call) => (isForeign(call) ? without(call) : call)) } : own;
  });
}

function without<T extends AssistantMessage | ToolCallPart | FunctionCallPart>(value: T): T {
  const { extra, ...rest } = value;
  return rest as T;
}
