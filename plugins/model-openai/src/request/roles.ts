import type { WireMessage } from './wire-message.js';

/** Stands between a tool result and the next user message, where servers require an answer. */
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
  const result: WireMessage[] = [];
  const system = messages.filter(({ role }) => role === 'system');
  if (system.length > 0) result.push(joined(system));
  /** Neighbours that become one message, joined at once: one by one would copy each again. */
  let group: WireMessage[] = [];
  const endGroup = () => {
    if (group.length > 0) result.push(joined(group));
    group = [];
  };
  for (const message of messages) {
    if (message.role === 'system') continue;
    const last = group.at(-1);
    if (last && !canJoin(last, message)) {
      endGroup();
      if (last.role === 'tool' && message.role === 'user') result.push({ role: 'assistant', content: ACKNOWLEDGED });
    }
    group.push(message);
  }
  endGroup();
  return userFirst(result);
}

/** Results follow their calls: a message with calls joins the one before it only. */
function canJoin(last: WireMessage, { role }: WireMessage): boolean {
  return last.role === role && (role === 'user' || (role === 'assistant' && last.tool_calls === undefined));
}

/** Of several values of one field, the last one is sent. */
function joined(messages: readonly WireMessage[]): WireMessage {
  const [first] = messages;
  if (first && messages.length === 1) return first;
  const fields = new Map(messages.flatMap((message) => Object.entries(message)));
  return { ...(Object.fromEntries(fields) as WireMessage), content: joinedContent(messages.map(({ content }) => content)) };
}

function joinedContent(contents: readonly unknown[]): unknown {
  const said = contents.filter((content) => content !== null && content !== undefined && content !== '');
  if (said.length < 2) return said.length === 1 ? said[0] : contents.at(-1);
  const parts: unknown[] = [];
  let texts: unknown[] = [];
  const endText = () => {
    if (texts.length > 0) parts.push({ type: 'text', text: texts.join('\n\n') });
    texts = [];
  };
  for (const content of said) {
    if (!Array.isArray(content)) texts.push(content);
    else {
      endText();
      for (const part of content) parts.push(part);
    }
  }
  if (parts.length === 0) return texts.join('\n\n');
  endText();
  return parts;
}
