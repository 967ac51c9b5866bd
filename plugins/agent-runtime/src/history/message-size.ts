import type { Message, ToolDeclaration } from '@plugboard/kernel';

/** Bytes of JSON text that are taken for a token: an estimate, where nobody has counted. */
const BYTES_PER_TOKEN = 4;

const counted = new WeakMap<object, number>();

/** Bytes of a message as JSON, or of a list of tools. What was counted once is remembered as long as it is there. */
export function bytesOf(value: Message | readonly ToolDeclaration[]): number {
  let bytes = counted.get(value);
  if (bytes === undefined) {
    bytes = Buffer.byteLength(JSON.stringify(value));
    counted.set(value, bytes);
  }
  return bytes;
}

/** About how many tokens a message takes, or a list of tools. */
export function tokensOf(value: Message | readonly ToolDeclaration[]): number {
  return Math.ceil(bytesOf(value) / BYTES_PER_TOKEN);
}

/** About how many tokens a text takes. */
export function estimate(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
