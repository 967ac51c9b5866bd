import type { Message } from './message.js';

/**
 * Longest text that is kept, in characters. The limit of conversations in memory counts the texts,
 * but no limit counts those of a running turn, where texts of large messages would double its
 * memory.
 */
const KEPT_LENGTH = 16 * 1024;

/** What is known of a message after its first serialization. */
interface Serialized {
  /** Undefined for a large message. */
  readonly text: string | undefined;
  readonly bytes: number;
}

/**
 * The key under which a message holds what is known of it. The property is not enumerable: a copy
 * of the message may differ, and does not get it. A WeakMap of all messages in memory would make
 * each garbage collection, and each look at a message, slower.
 */
const SERIALIZED = Symbol('serialized');

function serializedOf(message: object): Serialized | undefined {
  return (message as { readonly [SERIALIZED]?: Serialized })[SERIALIZED];
}

/**
 * Returns a message of a session as JSON. A text of up to 16,384 characters is kept with the
 * message, so that the store and every later request to a model share one serialization. The
 * message must not change afterwards. Nothing is kept with a frozen message.
 *
 * @experimental
 */
export function messageJson(message: Message): string {
  const known = serializedOf(message);
  if (known?.text !== undefined) return known.text;
  const text = JSON.stringify(message);
  if (!known) remember(message, text);
  return text;
}

/** Returns the size of a message of a session as JSON, in bytes. @experimental */
export function messageSize(message: Message): number {
  return (serializedOf(message) ?? remember(message, JSON.stringify(message))).bytes;
}

/**
 * Returns the text that is kept with a message.
 *
 * @returns undefined if `messageJson` was not called with this object, or the text was too long.
 * @experimental
 */
export function knownMessageJson(message: object): string | undefined {
  return serializedOf(message)?.text;
}

function remember(message: Message, text: string): Serialized {
  const value: Serialized = { text: text.length <= KEPT_LENGTH ? text : undefined, bytes: Buffer.byteLength(text) };
  Reflect.defineProperty(message, SERIALIZED, { value });
  return value;
}
