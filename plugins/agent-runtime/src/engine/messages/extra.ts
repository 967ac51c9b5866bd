import type { Message } from '@plugboard/kernel';
import type { AssistantMessage, Extra, FunctionCallPart, ToolCallPart, ToolDeclaration } from '@plugboard/kernel/contracts';
import { digestOf, prefixOf, prefixWith } from './prefix.js';

/**
 * Messages for a request to a connection. An extra stays if it is the connection's own and if
 * everything before its message is what it was: the prompt, the tools and the earlier messages with
 * their extras. So after a change, extras are left out from there on (AI-8).
 */
export function withOwnExtras(
  messages: readonly Message[],
  connection: string,
  tools: readonly ToolDeclaration[],
): readonly Message[] {
  const last = messages.findLastIndex(hasExtras);
  if (last < 0) return messages;
  let prefix = prefixOf([], tools);
  const isOwn = (extra: Extra) => extra.connection === connection && extra.prefix === prefix && !isRefused(extra);
  return messages.map((message, index) => {
    if (index > last) return message;
    const own = filterExtras(message, isOwn);
    if (index < last) prefix = prefixWith(prefix, own); // nothing depends on the digest of the last one
    return own;
  });
}

/**
 * Digests of the extras that their provider refused last: a session that was evicted from memory is
 * read again as new objects.
 */
const refused = new Set<string>();
const MAX_REFUSED = 10_000;

function isRefused(extra: Extra): boolean {
  return refused.size > 0 && refused.has(digestOf(extra));
}

function refuse(extra: Extra): void {
  refused.add(digestOf(extra));
  const [oldest] = refused;
  if (refused.size > MAX_REFUSED && oldest !== undefined) refused.delete(oldest);
}

/** The provider refused a request with these messages, and accepted it without their extras. */
export function refuseExtras(messages: readonly Message[]): void {
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const { extra } of [message, ...(message.tool_calls ?? [])]) if (extra) refuse(extra);
  }
}

/** Messages without extras, as a caller may send them. Returns the list itself if it has none. */
export function withoutExtras(messages: readonly Message[]): readonly Message[] {
  return messages.some(hasExtras) ? messages.map((message) => filterExtras(message, () => false)) : messages;
}

export function hasExtras(message: Message): boolean {
  if (message.role !== 'assistant') return false;
  return message.extra !== undefined || (message.tool_calls ?? []).some(({ extra }) => extra !== undefined);
}

/** Messages without any extra, by the message: what is cached with a message stays with it. */
const bare = new WeakMap<Message, Message>();

/** Returns the message itself if it stays the same. */
function filterExtras(message: Message, keep: (extra: Extra) => boolean): Message {
  if (message.role !== 'assistant' || !hasExtras(message)) return message;
  const isForeign = ({ extra }: { readonly extra?: Extra }) => extra !== undefined && !keep(extra);
  const parts = [message, ...(message.tool_calls ?? [])].filter(({ extra }) => extra !== undefined);
  if (!parts.some(isForeign)) return message;
  const isBare = parts.every(isForeign);
  const known = isBare ? bare.get(message) : undefined;
  if (known) return known;
  const own: AssistantMessage = isForeign(message) ? without(message) : message;
  const filtered = own.tool_calls
    ? { ...own, tool_calls: own.tool_calls.map((call) => (isForeign(call) ? without(call) : call)) }
    : own;
  if (isBare) bare.set(message, filtered);
  return filtered;
}

function without<T extends AssistantMessage | ToolCallPart | FunctionCallPart>(value: T): T {
  const { extra, ...rest } = value;
  return rest as T;
}
