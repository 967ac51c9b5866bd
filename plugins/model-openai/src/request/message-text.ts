/** Longest text that is kept, in characters: larger ones would double the memory of a turn. */
const MAX_KEPT_LENGTH = 16 * 1024;

/**
 * The key under which a message holds its text. The property is not enumerable: a copy of the
 * message may differ, and does not get it. A WeakMap of all messages in memory would make each
 * garbage collection, and each look at a message, slower.
 */
const TEXT = Symbol('text');

/**
 * Returns a message as JSON. A text of up to 16,384 characters is kept with the message, so that a
 * conversation is not serialized again for each request. The message must not change afterwards.
 * Nothing is kept with a frozen message.
 */
export function messageText(message: object): string {
  const known = (message as { readonly [TEXT]?: string })[TEXT];
  if (known !== undefined) return known;
  const text = JSON.stringify(message);
  if (text.length <= MAX_KEPT_LENGTH) Reflect.defineProperty(message, TEXT, { value: text });
  return text;
}
