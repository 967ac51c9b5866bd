import type { LanguageModelV4CallOptions, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { isObject } from '../json/json.js';
import type { ProviderKind } from '../provider/provider-kind.js';

type Options = Partial<LanguageModelV4CallOptions>;

/**
 * Claude with a budget for thinking refuses results of tools whose calls no thought of its own
 * precedes: another connection began the step, or the caller, whose protocol has no thoughts. It
 * then answers without thinking.
 */
export function withPossibleThinking(options: Options, prompt: LanguageModelV4Prompt, kind: ProviderKind): Options {
  const { namespace, thinking } = kind;
  const last = prompt.findLastIndex(({ role }) => role === 'assistant');
  // A message of the user may follow the results: it gave up the calls.
  if (thinking === undefined || !prompt.slice(last + 1).some(({ role }) => role === 'tool')) return options;
  const answer = prompt[last];
  if (answer?.role !== 'assistant' || answer.content[0]?.type === 'reasoning') return options;
  const own = options.providerOptions?.[namespace];
  const given = own?.[thinking];
  const hasBudget = isObject(given) ? given.type === 'enabled' : options.reasoning !== undefined;
  if (!hasBudget) return options;
  const { reasoning, ...rest } = options;
  const providerOptions = { ...options.providerOptions, [namespace]: { ...own, [thinking]: { type: 'disabled' } } };
  return { ...rest, providerOptions: providerOptions as SharedV4ProviderOptions };
}
