import type { Attributes } from '@opentelemetry/api';
import type { ModelConnector } from '@plugboard/kernel';
import type { Usage } from '@plugboard/kernel/contracts';

/** The provider of a connection. Unknown if its connector names none, or a reload removed it. */
export function providerOf(connector: ModelConnector | undefined): string {
  return connector?.provider ?? '_OTHER';
}

/** Token counts as the conventions name them. A part that is 0 may not have been counted. */
export function usageAttributes(usage: Usage | undefined): Attributes {
  if (!usage) return {};
  return {
    'gen_ai.usage.input_tokens': usage.promptTokens,
    'gen_ai.usage.output_tokens': usage.completionTokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens || undefined,
    'gen_ai.usage.cache_write.input_tokens': usage.cacheWriteTokens || undefined,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens || undefined,
  };
}
