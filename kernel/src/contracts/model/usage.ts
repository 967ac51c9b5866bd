/** Token counts of the model server. @public */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Prompt tokens that the model server had cached. */
  readonly cachedTokens: number;
  /** Prompt tokens that the model server wrote to its cache. */
  readonly cacheWriteTokens: number;
  /** Completion tokens spent on reasoning. */
  readonly reasoningTokens: number;
}

/** Token counts of zero, to start a sum with. @public */
export const NO_USAGE: Usage = {
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
};

/** Returns the sum of two token counts. @public */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
  };
}
