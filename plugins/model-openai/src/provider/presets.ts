import type { Dialect, Placeholder } from './dialect.js';

/** What a provider needs that differs from the protocol. */
export interface Preset extends Partial<Omit<Dialect, 'provider' | 'omit' | 'placeholder'>> {
  readonly omit?: readonly string[];
  /** @param model the name of the model: what it needs may differ between a provider's models. */
  placeholder?(model: string): Placeholder | undefined;
}

/** OpenAI's latest additions, which servers that validate strictly refuse. */
const OPENAI_ONLY = ['prediction', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'refusal', 'verbosity'];

const PENALTIES = ['frequency_penalty', 'presence_penalty'];
const LOGPROBS = ['logit_bias', 'logprobs', 'top_logprobs'];
const REASONING = ['reasoning', 'reasoning_content'];

/** The presets, by the name of the option `provider`. */
export const PRESETS = {
  none: {},
  /** Reasoning models refuse `max_tokens`; all others accept the newer name too. */
  openai: { tokenParam: 'max_completion_tokens' },
  /** Keys of resources go in a header of their own. */
  azure: { keyHeader: 'api-key' },
  /** `input_schema` must not have `anyOf` and the like at the top level. */
  anthropic: { schema: 'strict', emptyContent: '', roles: 'user-first', omit: ['refusal'] },
  /** The request is parsed strictly: `Unknown name "…": Cannot find field.` */
  gemini: {
    schema: 'gemini',
    roles: 'user-first',
    omit: [...OPENAI_ONLY, ...PENALTIES, ...LOGPROBS, 'name', 'parallel_tool_calls', 'seed', 'strict'],
    placeholder: (model) =>
      /gemini-([3-9]|[1-9]\d)|gemini-\w+-latest/i.test(model) ? { signature: 'skip_thought_signature_validator' } : undefined,
  },
  /** Validates strictly (422 `extra_forbidden`), also the order of roles. Always sends usage. */
  mistral: {
    tokenParam: 'max_tokens',
    toolIds: 'alnum9',
    roles: 'alternate',
    emptyContent: '',
    omit: [...OPENAI_ONLY, ...LOGPROBS, 'name', 'seed', 'stream_options'],
  },
  /** With thinking, a step with tool calls needs a `reasoning_content`, which may be empty. */
  deepseek: { tokenParam: 'max_tokens', emptyContent: '', omit: OPENAI_ONLY, placeholder: () => ({ reasoning: '' }) },
  /** The same, but an empty one counts as missing. */
  moonshot: {
    tokenParam: 'max_tokens',
    emptyContent: '',
    schema: 'strict',
    omit: [...OPENAI_ONLY, ...LOGPROBS],
    placeholder: (model) => (/kimi|k\d|thinking/i.test(model) ? { reasoning: ' ' } : undefined),
  },
  groq: { omit: [...OPENAI_ONLY, ...LOGPROBS, ...REASONING, 'name'] },
  cerebras: { schema: 'strict', omit: [...OPENAI_ONLY, ...PENALTIES, ...LOGPROBS, ...REASONING, 'name'] },
  /** Reasoning models refuse penalties and stop sequences. */
  xai: { omit: [...OPENAI_ONLY, ...PENALTIES, 'logit_bias', 'name', 'stop'] },
  bedrock: {
    schema: 'strict',
    roles: 'alternate',
    emptyContent: '',
    omit: [...OPENAI_ONLY, ...LOGPROBS, 'name', 'parallel_tool_calls', 'strict'],
  },
  'workers-ai': { emptyContent: '', omit: [...OPENAI_ONLY, ...LOGPROBS, 'name', 'parallel_tool_calls', 'strict'] },
  /** Models that think refuse requests without a stream. */
  dashscope: { alwaysStream: true, omit: [...OPENAI_ONLY, ...LOGPROBS] },
  minimax: { body: { reasoning_split: true }, thinkTags: 'split', roles: 'alternate', omit: [...OPENAI_ONLY, ...LOGPROBS] },
  zhipu: { tokenParam: 'max_tokens', omit: [...OPENAI_ONLY, ...LOGPROBS, ...PENALTIES] },
  perplexity: { roles: 'alternate', omit: [...OPENAI_ONLY, ...LOGPROBS, 'name'] },
  openrouter: { omit: ['refusal'] },
  ollama: { emptyContent: '', omit: ['refusal'] },
  /** The templates of many models require alternating roles. */
  'llama.cpp': { roles: 'alternate', emptyContent: '', schema: 'strict', omit: ['refusal'] },
  vllm: { omit: ['refusal'] },
} as const satisfies Readonly<Record<string, Preset>>;

export type Provider = keyof typeof PRESETS;

export const PROVIDERS = Object.keys(PRESETS) as readonly Provider[];

/** Hosts of providers, as the end of the host name, or the whole of it. */
const HOSTS: readonly (readonly [RegExp, Provider])[] = [
  [/^api\.openai\.com$/, 'openai'],
  [/\.openai\.azure\.com$|\.services\.ai\.azure\.com$|\.cognitiveservices\.azure\.com$/, 'azure'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/^generativelanguage\.googleapis\.com$|(^|[.-])aiplatform\.googleapis\.com$/, 'gemini'],
  [/(^|\.)mistral\.ai$/, 'mistral'],
  [/^api\.deepseek\.com$/, 'deepseek'],
  [/^api\.moonshot\.(ai|cn)$|^api\.kimi\.com$/, 'moonshot'],
  [/^api\.groq\.com$/, 'groq'],
  [/^api\.cerebras\.ai$/, 'cerebras'],
  [/^api\.x\.ai$|\.api\.x\.ai$/, 'xai'],
  [/^bedrock-(runtime|mantle)\..*(amazonaws\.com|api\.aws)$/, 'bedrock'],
  [/^api\.cloudflare\.com$/, 'workers-ai'],
  [/^dashscope(-[a-z]+)?\.aliyuncs\.com$/, 'dashscope'],
  [/^api\.minimax(i)?\.(io|com|chat)$/, 'minimax'],
  [/^open\.bigmodel\.cn$|^api\.z\.ai$/, 'zhipu'],
  [/^api\.perplexity\.ai$/, 'perplexity'],
  [/^openrouter\.ai$/, 'openrouter'],
  [/^ollama$|^ollama:|:11434$/, 'ollama'],
];

/** The provider of a host (`api.openai.com`, `127.0.0.1:11434`), if it is known. */
export function providerOf(host: string): Provider | undefined {
  return HOSTS.find(([pattern]) => pattern.test(host))?.[1];
}
