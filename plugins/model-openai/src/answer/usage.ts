import type { Usage } from '@plugboard/kernel';
import { isObject } from '../json/json.js';

/** Reads the protocol's `usage` object. Missing or invalid counts are 0. */
export function readUsage(usage: Readonly<Record<string, unknown>>): Usage {
  const prompt = isObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const completion = isObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  return {
    promptTokens: count(usage.prompt_tokens),
    completionTokens: count(usage.completion_tokens),
    cachedTokens: count(prompt.cached_tokens),
    reasoningTokens: count(completion.reasoning_tokens),
  };
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}
