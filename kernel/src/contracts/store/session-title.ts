import { type Message, textOf } from '../messages/message.js';

/** Maximum length of a title, in code points. */
const MAX_LENGTH = 80;
/** How much of a text is looked at, in UTF-16 units. */
const MAX_READ = 1_000;

/**
 * Returns the title of a session that begins with these messages: the start of the first text of
 * the user, on one line, with at most 80 characters. Undefined if no message of the user has text.
 *
 * @public
 */
export function sessionTitle(messages: readonly Message[]): string | undefined {
  for (const { role, content } of messages) {
    const title = role === 'user' ? titleOf(textOf(content)) : '';
    if (title !== '') return title;
  }
  return undefined;
}

function titleOf(text: string): string {
  const line = text
    .trimStart()
    .slice(0, MAX_READ)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const characters = Array.from(line);
  if (characters.length <= MAX_LENGTH) return line;
  return `${characters
    .slice(0, MAX_LENGTH - 1)
    .join('')
    .trimEnd()}…`;
}
