import type { LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider';

type Options = Readonly<Record<string, unknown>>;

/** What a provider needs beyond the specification. */
export interface ProviderKind {
  /** The key of its options in `providerOptions`. */
  readonly namespace: string;
  /** Options of every request. Those of the entry replace them. */
  readonly defaults: Options;
  /** The option with Claude's budget for thinking: a step with results then needs a thought. */
  readonly thinking?: 'thinking' | 'reasoningConfig';
  /** Ids of tool calls: nine letters and digits, as Mistral requires, or any common form. */
  readonly callIds?: 'alnum9';
  /** Whether user and assistant messages must alternate, also after results of tools. */
  readonly alternates?: boolean;
  /** Whether an image's URL needs its exact type: one without an extension is not sent. */
  readonly needsImageType?: boolean;
  /** Whether it refuses tool calls in a request that declares no tools, or may call none. */
  readonly needsTools?: boolean;
  /** Whether names of tools must begin with a letter or an underscore. */
  readonly namesBeginWithLetter?: boolean;
  /** Marks the end of a cached prefix, in the options of a message (AI-10, AI-11). */
  readonly breakpoint?: Options;
  /** The options for `parallel_tool_calls: false` and other parameters of the protocol, by name. */
  readonly params: Readonly<Record<string, (value: unknown) => Options>>;
}

const ANTHROPIC: ProviderKind = {
  namespace: 'anthropic',
  defaults: {},
  thinking: 'thinking',
  breakpoint: { cacheControl: { type: 'ephemeral' } },
  params: { parallel_tool_calls: (value) => ({ disableParallelToolUse: value === false }) },
};

const OPENAI: ProviderKind = {
  namespace: 'openai',
  // The server keeps the conversation. Stored items of an account are unknown to another one.
  defaults: { store: false },
  params: {
    parallel_tool_calls: (value) => ({ parallelToolCalls: value }),
    prompt_cache_key: (value) => ({ promptCacheKey: value }),
    verbosity: (value) => ({ textVerbosity: value }),
  },
};

const XAI: ProviderKind = {
  namespace: 'xai',
  defaults: { store: false },
  params: {
    parallel_tool_calls: (value) => ({ parallelToolCalls: value }),
    prompt_cache_key: (value) => ({ promptCacheKey: value }),
  },
};

const MISTRAL: ProviderKind = { ...XAI, namespace: 'mistral', defaults: {}, callIds: 'alnum9', alternates: true };

/** Models on Bedrock that have a cache. Others refuse a cache point. */
const CACHED_ON_BEDROCK = /claude|nova/;

/** Recognizes a provider by its model's word: `anthropic.messages`, `google.vertex.chat`. */
export function kindOf(provider: string, model: string): ProviderKind {
  if (provider.includes('anthropic')) return ANTHROPIC;
  if (/^(amazon-)?bedrock/.test(provider)) {
    const cache = CACHED_ON_BEDROCK.test(model) ? { breakpoint: { cachePoint: { type: 'default' } } } : {};
    return { namespace: 'bedrock', defaults: {}, thinking: 'reasoningConfig', needsTools: true, params: {}, ...cache };
  }
  if (provider.startsWith('xai')) return XAI;
  if (provider.startsWith('mistral')) return MISTRAL;
  if (provider.endsWith('.responses')) return provider.startsWith('azure') ? { ...OPENAI, namespace: 'azure' } : OPENAI;
  const needsImageType = provider.startsWith('google.vertex');
  const namesBeginWithLetter = provider.startsWith('google');
  return { namespace: provider.split('.')[0] ?? provider, defaults: {}, params: {}, needsImageType, namesBeginWithLetter };
}

/**
 * Adds the breakpoints of the cache: behind the prompt, which includes the tools, and behind the
 * last two messages of the user. The last one moves on with every step, and the one before it is
 * where the request before ended (AI-10).
 */
export function withBreakpoints(prompt: LanguageModelV4Prompt, { namespace, breakpoint }: ProviderKind): LanguageModelV4Prompt {
  if (breakpoint === undefined) return prompt;
  const providerOptions = { [namespace]: breakpoint } as SharedV4ProviderOptions;
  const marked = [prompt.findLastIndex(({ role }) => role === 'system'), ...lastUserMessages(prompt)];
  return prompt.map((message, index) => (marked.includes(index) ? { ...message, providerOptions } : message));
}

/** The last messages of the user, or with results, before which an answer stands. */
function lastUserMessages(prompt: LanguageModelV4Prompt): readonly number[] {
  const ends = prompt.flatMap(({ role }, index) => {
    const next = prompt[index + 1]?.role;
    const isEnd = (role === 'user' || role === 'tool') && next !== 'user' && next !== 'tool';
    return isEnd ? [index] : [];
  });
  return ends.slice(-2);
}
