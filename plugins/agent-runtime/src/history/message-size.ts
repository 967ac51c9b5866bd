import type { Message, ToolDeclaration } from '@plugboard/kernel';

/** Estimated bytes of JSON text per token. */
const BYTES_PER_TOKEN = 4;

const counted = new WeakMap<object, number>();

/** Bytes of a message, or of a list of tools, as JSON. Cached per object. */
export function bytesOf(value: Message | readonly ToolDeclaration[]): number {
  let bytes = counted.get(value);
  if (bytes === undefined) {
    bytes = Buffer.byteLength(JSON.stringify(value));
    counted.set(value, bytes);
  }
  return bytes;
}

/** Estimated tokens of a message or of a list of tools. */
export function tokensOf(value: Message | readonly ToolDeclaration[]): number {
  return Math.ceil(bytesOf(value) / BYTES_PER_TOKEN);
}

/** Estimated tokens of a text. */
export function estimate(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
