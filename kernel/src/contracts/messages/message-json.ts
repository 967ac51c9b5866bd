import type { Message } from './message.js';

/**
 * Longest text that is kept, in characters. The limit of conversations in memory counts the texts,
 * but no limit counts those of a running turn, where texts of large messages would double its memory.
 */
const KEPT_LENGTH = 16 * 1024;

const texts = new WeakMap<object, string>();

/**
 * Returns a message of a session as JSON. The text is kept with the message, so that its size, the
 * store and every later request to a model share one serialization. The message must not change
 * afterwards.
 *
 * @experimental
 */
export function messageJson(message: Message): string {
  let text = texts.get(message);
  if (text === undefined) {
    text = JSON.stringify(message);
    if (text.length <= KEPT_LENGTH) texts.set(message, text);
  }
  return text;
}

/** Returns the text that `messageJson` made of the same object, if it did. @experimental */
export function knownMessageJson(message: object): string | undefined {
  return texts.get(message);
}
