import type { Message, Metadata, Summary } from '@plugboard/kernel';

/** A copy that nobody else holds and nobody can change, and its size as JSON. */
export interface Copy<T> {
  readonly value: T;
  readonly bytes: number;
}

/** The bytes are those of the messages, without what makes a list of them. */
export function copyOfMessages(messages: readonly Message[]): Copy<readonly Message[]> {
  const texts = messages.map((message) => JSON.stringify(message));
  return {
    value: Object.freeze(texts.map((text) => JSON.parse(text, (_, value) => Object.freeze(value)))),
    bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  };
}

/** None takes no room. */
export function copyOfMetadata(metadata: Metadata): Copy<Metadata> {
  const value = Object.freeze({ ...metadata });
  return { value, bytes: Object.keys(value).length > 0 ? Buffer.byteLength(JSON.stringify(value)) : 0 };
}

export function copyOfSummary({ messages, text }: Summary): Copy<Summary> {
  return { value: Object.freeze({ messages, text }), bytes: Buffer.byteLength(JSON.stringify(text)) };
}
