import type { Usage } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';

type Counts = Readonly<Record<string, unknown>>;

/** Finds the token counts of a chunk: in `usage`, the choice (Moonshot) or `x_groq` (Groq). */
export function findUsage({ usage, x_groq: groq }: Counts, choice: Counts | undefined): Usage | undefined {
  if (isObject(usage)) return readUsage(usage);
  if (isObject(choice?.usage)) return readUsage(choice.usage);
  return isObject(groq) && isObject(groq.usage) ? readUsage(groq.usage) : undefined;
}

/** Reads a `usage` object. Missing or invalid counts are 0. */
function readUsage(usage: Counts): Usage {
  const prompt = nested(usage.prompt_tokens_details, usage.input_tokens_details);
  const completion = nested(usage.completion_tokens_details, usage.output_tokens_details);
  const promptTokens = count(usage.prompt_tokens, usage.input_tokens);
  // Gemini and xAI count what the model thought in the total only.
  const rest = count(usage.total_tokens) - promptTokens;
  return {
    promptTokens,
    completionTokens: Math.max(count(usage.completion_tokens, usage.output_tokens), rest),
    // DeepSeek and Moonshot count at the top level.
    cachedTokens: count(prompt.cached_tokens, usage.prompt_cache_hit_tokens, usage.cached_tokens, usage.cache_read_input_tokens),
    // OpenRouter, and gateways to Anthropic.
    cacheWriteTokens: count(prompt.cache_write_tokens, prompt.cache_creation_tokens, usage.cache_creation_input_tokens),
    reasoningTokens: count(completion.reasoning_tokens, usage.reasoning_tokens),
  };
}

/** Reads llama.cpp's `timings`, which older versions send instead of `usage`. */
export function readTimings(timings: unknown): Usage | undefined {
  if (!isObject(timings) || timings.predicted_n === undefined) return undefined;
  const { prompt_n, cache_n, predicted_n } = timings;
  const cachedTokens = count(cache_n);
  return {
    promptTokens: count(prompt_n) + cachedTokens,
    completionTokens: count(predicted_n),
    cachedTokens,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

function nested(...values: readonly unknown[]): Counts {
  return values.find(isObject) ?? {};
}

/** The first valid count. */
function count(...values: readonly unknown[]): number {
  for (const value of values) if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
  return 0;
}
