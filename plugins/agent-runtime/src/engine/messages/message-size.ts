import type { Message } from '@plugboard/kernel';
import type { ContentPart, RefusalPart, ToolDeclaration } from '@plugboard/kernel/contracts';

/** Estimated bytes of JSON text per token. */
export const BYTES_PER_TOKEN = 4;

/**
 * Estimated tokens of a part that is not text, regardless of its bytes: about the most that
 * providers count for an image of ordinary size, a minute of audio or video, and a document of a
 * few pages.
 */
const PART_TOKENS: Readonly<Record<string, number>> = { image_url: 1_500, input_audio: 2_000, video_url: 4_000, file: 4_000 };

/**
 * The key under which a message holds its size. The property is not enumerable: a copy of the
 * message may differ, and does not get it. A WeakMap of all messages in memory would make each
 * garbage collection slower.
 */
const SIZE = Symbol('size');
const toolBytes = new WeakMap<object, number>();
const estimated = new WeakMap<object, number>();

/** Bytes of a message, or of a list of tools, as JSON. Kept with the object. */
export function bytesOf(value: Message | readonly ToolDeclaration[]): number {
  if ('content' in value) return messageBytes(value);
  let bytes = toolBytes.get(value);
  if (bytes === undefined) {
    bytes = Buffer.byteLength(JSON.stringify(value));
    toolBytes.set(value, bytes);
  }
  return bytes;
}

function messageBytes(message: Message & { readonly [SIZE]?: number }): number {
  if (message[SIZE] !== undefined) return message[SIZE];
  const bytes = Buffer.byteLength(JSON.stringify(message));
  Reflect.defineProperty(message, SIZE, { value: bytes });
  return bytes;
}

/**
 * Estimated tokens of a message or of a list of tools. The data of images, audio and files is not
 * text.
 */
export function tokensOf(value: Message | readonly ToolDeclaration[]): number {
  if (!('content' in value) || typeof value.content === 'string' || value.content === null) {
    return Math.ceil(bytesOf(value) / BYTES_PER_TOKEN);
  }
  let tokens = estimated.get(value);
  if (tokens === undefined) {
    const parts: readonly (ContentPart | RefusalPart)[] = value.content;
    const text = parts.filter(({ type }) => !(type in PART_TOKENS));
    const media = parts.reduce((sum, { type }) => sum + (PART_TOKENS[type] ?? 0), 0);
    tokens = estimateTokens(JSON.stringify({ ...value, content: text })) + media;
    estimated.set(value, tokens);
  }
  return tokens;
}

export function estimateTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
