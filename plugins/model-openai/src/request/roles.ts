import type { WireMessage } from './wire-message.js';

/**
 * Text between a tool result and the next user message, for servers that require an answer there.
 */
const ACKNOWLEDGED = 'OK.';
/** Text before an answer, for servers whose conversations begin with the user. */
const BEGINNING = '(The beginning of the conversation was left out.)';

/** Adds a message of the user before an answer that begins the conversation. */
export function userFirst(messages: readonly WireMessage[]): readonly WireMessage[] {
  const first = messages.findIndex(({ role }) => role !== 'system');
  return messages[first]?.role === 'assistant' ? messages.toSpliced(first, 0, { role: 'user', content: BEGINNING }) : messages;
}

/**
 * Makes messages of users and of the assistant alternate: neighbours with the same role become one
 * message, and an assistant message is added between a tool result and a user message. System
 * messages become one, at the beginning, and the user's first message follows.
 */
export function alternate(messages: readonly WireMessage[]): readonly WireMessage[] {
  const system = messages.filter(({ role }) => role === 'system');
  const result: WireMessage[] = system.length > 0 ? [system.reduce(joined)] : [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const last = result.at(-1);
    if (last && canJoin(last, message)) result[result.length - 1] = joined(last, message);
    else {
      if (last?.role === 'tool' && message.role === 'user') result.push({ role: 'assistant', content: ACKNOWLEDGED });
      result.push(message);
    }
  }
  return userFirst(result);
}

/**
 * Results of an assistant's calls follow it: a message with calls joins the one before it, but not
 * the one after it.
 */
function canJoin(last: WireMessage, { role }: WireMessage): boolean {
  return last.role === role && (role === 'user' || (role === 'assistant' && last.tool_calls === undefined));
}

function joined(a: WireMessage, b: WireMessage): WireMessage {
  return { ...a, ...b, content: joinedContent(a.content, b.content) };
}

function joinedContent(a: unknown, b: unknown): unknown {
  if (a === null || a === undefined || a === '') return b;
  if (b === null || b === undefined || b === '') return a;
  if (typeof a === 'string' && typeof b === 'string') return `${a}\n\n${b}`;
  return [...partsOf(a), ...partsOf(b)];
}

function partsOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: 'text', text: content }];
}
