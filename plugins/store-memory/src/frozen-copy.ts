import type { Message } from '@plugboard/kernel';
import type { Metadata, Summary } from '@plugboard/kernel/contracts';

/** A frozen copy that shares nothing with its source. */
export interface FrozenCopy<T> {
  readonly value: T;
  /** Size as JSON. */
  readonly bytes: number;
}

/** The size is that of the messages alone, without the brackets and commas of a list. */
export function copyMessages(messages: readonly Message[]): FrozenCopy<readonly Message[]> {
  const texts = messages.map((message) => JSON.stringify(message));
  return {
    value: Object.freeze(texts.map((text) => JSON.parse(text, (_, value) => Object.freeze(value)))),
    bytes: texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  };
}

/** Empty metadata has size 0. */
export function copyMetadata(metadata: Metadata): FrozenCopy<Metadata> {
  const value = Object.freeze({ ...metadata });
  return { value, bytes: Object.keys(value).length > 0 ? Buffer.byteLength(JSON.stringify(value)) : 0 };
}

export function copySummary({ messages, text }: Summary): FrozenCopy<Summary> {
  return { value: Object.freeze({ messages, text }), bytes: Buffer.byteLength(JSON.stringify(text)) };
}
