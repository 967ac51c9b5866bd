import type { ContentPart, Message, StoredSession, Summary } from '@plugboard/kernel';
import { estimate } from './message-size.js';

/** What a view is made of. */
export type Conversation = Pick<StoredSession, 'messages' | 'summary'>;

/**
 * A conversation behind a summary of what was said before it. The summary becomes a part of the first message, which is a user's: that is valid everywhere, and gives what was said the
 * weight that it had when it was said. A message of its own would stand before a user message, and the templates of many models want roles that alternate. A system message would be a
 * second one, which not every server takes; and in the prompt's place, what a user once said would speak with the prompt's authority.
 */
export function withSummary(summary: Summary, conversation: readonly Message[]): readonly Message[] {
  const [first, ...others] = conversation;
  const text = shown(summary.text);
  if (first?.role !== 'user') return [{ role: 'user', content: text }, ...conversation];
  const content: string | ContentPart[] =
    typeof first.content === 'string' ? text + first.content : [{ type: 'text', text }, ...first.content];
  return [{ ...first, content }, ...others];
}

/** About how many tokens the text of a summary takes in front of a conversation, at the most. */
export function tokensOfSummary(text: string): number {
  return estimate(JSON.stringify({ role: 'user', content: [{ type: 'text', text: shown(text) }] }));
}

function shown(text: string): string {
  return `<summary>\nWhat was said before in this conversation, in short:\n\n${text}\n</summary>\n\n`;
}

/** The summary that is kept, unless the conversation cannot go on behind it: no result may follow whose call is in it. */
export function usableSummary({ messages, summary }: Conversation, added: readonly Message[]): Summary | undefined {
  if (!summary || summary.messages > messages.length) return undefined;
  if (summary.messages === messages.length) return answersCalls(added) ? undefined : summary;
  const goesOn = messages[summary.messages]?.role === 'user' && messages[summary.messages - 1]?.role !== 'tool';
  return goesOn ? summary : undefined;
}

/** Whether new messages begin with results of the last turn's calls. */
export function answersCalls(added: readonly Message[]): boolean {
  return added[0]?.role === 'tool' || added[0]?.role === 'function';
}
