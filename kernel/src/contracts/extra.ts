import type { AssistantMessage, FunctionCallPart, Message, ToolCallPart } from './message.js';

/**
 * Data that a model connection attaches to its answer and needs back with the conversation: a thought
 * signature, encrypted reasoning, the server's own id of a tool call.
 *
 * 1. A connector emits it as `extra` of a `tool-call` or `end` event. It may be any JSON value.
 * 2. The runtime keeps it with the tool call or the message, together with the connection's name.
 * 3. Later requests to the same connection contain it; requests to any other do not.
 * 4. Callers never see it, and what a caller sends under this name is dropped.
 */
export interface Extra {
  /** The name of the connection under `models`. */
  readonly connection: string;
  readonly data: unknown;
}

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
