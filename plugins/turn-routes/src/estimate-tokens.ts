import type { Message } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';

/** Bytes of JSON text per token, on average over languages and code. */
const BYTES_PER_TOKEN = 4;

/** Tokens of an image, a recording or a document: about the most for one of ordinary size. */
const MEDIA_TOKENS = 1_500;

/** Estimates how many tokens a model counts for a conversation. No model server is asked. */
export function estimateTokens(messages: readonly Message[], tools: readonly ToolDeclaration[]): number {
  let media = 0;
  const text = JSON.stringify([messages, tools], (key, value) => {
    if (key !== 'image_url' && key !== 'file' && key !== 'input_audio' && key !== 'video_url') return value;
    media++;
    return undefined;
  });
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) + media * MEDIA_TOKENS;
}
