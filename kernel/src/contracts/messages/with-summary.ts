import type { ContentPart, Message } from './message.js';

/**
 * Prepends a summary of earlier messages to a conversation. The summary becomes part of the first
 * user message, which is valid everywhere. A separate user message would break the alternation of
 * roles that many chat templates require. A second system message is refused by some servers, and
 * inside the prompt the user's words would get the prompt's authority.
 *
 * @experimental
 */
export function withSummary(summary: string, conversation: readonly Message[]): readonly Message[] {
  const [first, ...others] = conversation;
  const text = `<summary>\nWhat was said before in this conversation, in short:\n\n${summary}\n</summary>\n\n`;
  if (first?.role !== 'user') return [{ role: 'user', content: text }, ...conversation];
  const content: string | ContentPart[] =
    typeof first.content === 'string' ? text + first.content : [{ type: 'text', text }, ...first.content];
  return [{ ...first, content }, ...others];
}
