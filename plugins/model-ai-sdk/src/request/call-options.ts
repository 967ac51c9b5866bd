import type {
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type { ModelRequest } from '@plugboard/kernel';
import { type ToolDeclaration, withoutCombination } from '@plugboard/kernel/contracts';
import type { AiSdkConfig } from '../config.js';
import { isObject, wellFormed } from '../json/json.js';
import type { ProviderKind } from '../provider/provider-kind.js';

type Options = Partial<LanguageModelV4CallOptions>;

/** The options of a call for the protocol's parameters, by name. */
const PARAMS: Readonly<Record<string, (value: unknown) => Options>> = {
  temperature: (value) => ({ temperature: value as number }),
  top_p: (value) => ({ topP: value as number }),
  frequency_penalty: (value) => ({ frequencyPenalty: value as number }),
  presence_penalty: (value) => ({ presencePenalty: value as number }),
  max_tokens: (value) => ({ maxOutputTokens: value as number }),
  max_completion_tokens: (value) => ({ maxOutputTokens: value as number }),
  stop: (value) => ({ stopSequences: Array.isArray(value) ? value : [String(value)] }),
  seed: (value) => ({ seed: value as number }),
  response_format: responseFormat,
  reasoning_effort: (value) => ({ reasoning: value as NonNullable<Options['reasoning']> }),
  tool_choice: toolChoice,
};

/** The names of the settings in a provider's warnings, by the protocol's parameters (AI-14). */
export const FEATURES: ReadonlyMap<string, string> = new Map([
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['seed', 'seed'],
  ['stopSequences', 'stop'],
  ['reasoning', 'reasoning_effort'],
]);

/** Parameters that only some providers have. */
const PROVIDER_PARAMS: ReadonlySet<string> = new Set(['parallel_tool_calls', 'prompt_cache_key', 'verbosity']);

/** @param kind undefined before the package is loaded, when any provider is possible. */
export function supportsParam(param: string, kind: ProviderKind | undefined): boolean {
  return Object.hasOwn(PARAMS, param) || (kind ? Object.hasOwn(kind.params, param) : PROVIDER_PARAMS.has(param));
}

/** Makes the options of a call, but its prompt and its signal. */
export function callOptions(request: Pick<ModelRequest, 'params' | 'tools'>, config: AiSdkConfig, kind: ProviderKind): Options {
  const { maxOutputTokens, reasoningEffort: reasoning } = config;
  const options: Options = { ...(maxOutputTokens && { maxOutputTokens }), ...(reasoning && { reasoning }) };
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(request.params)) {
    const isAboutTools = name === 'tool_choice' || name === 'parallel_tool_calls';
    if (isAboutTools && request.tools.length === 0) continue;
    Object.assign(own, kind.params[name]?.(value));
    Object.assign(options, PARAMS[name]?.(value));
  }
  if (request.tools.length > 0) options.tools = toolsOf(request.tools);
  options.providerOptions = providerOptions(own, config, kind);
  return options;
}

function providerOptions(own: Readonly<Record<string, unknown>>, config: AiSdkConfig, { namespace, defaults }: ProviderKind) {
  const given = config.providerOptions as SharedV4ProviderOptions;
  return { ...given, [namespace]: { ...defaults, ...own, ...given[namespace] } } as SharedV4ProviderOptions;
}

/** The last conversion of a list of tools. An agent has the same list in each of its turns. */
const knownTools = new WeakMap<readonly ToolDeclaration[], LanguageModelV4FunctionTool[]>();

function toolsOf(tools: readonly ToolDeclaration[]): LanguageModelV4FunctionTool[] {
  const known = knownTools.get(tools);
  if (known) return known;
  const converted = tools.map(toolOf);
  knownTools.set(tools, converted);
  return converted;
}

function toolOf({ name, description, inputSchema, strict }: ToolDeclaration): LanguageModelV4FunctionTool {
  return {
    type: 'function',
    name,
    description: description.toWellFormed(),
    // Providers require the type, which JSON Schema does not.
    inputSchema: wellFormed({ properties: {}, ...withoutCombination(inputSchema), type: 'object' }) as JSONSchema7,
    ...(strict === undefined ? {} : { strict }),
  };
}

function responseFormat(value: unknown): Options {
  if (!isObject(value)) return {};
  if (value.type === 'json_object') return { responseFormat: { type: 'json' } };
  if (value.type !== 'json_schema' || !isObject(value.json_schema)) return {};
  const { schema, name, description } = value.json_schema as { schema?: JSONSchema7; name?: string; description?: string };
  return {
    responseFormat: {
      type: 'json',
      ...(schema ? { schema } : {}),
      ...(name ? { name } : {}),
      ...(description ? { description } : {}),
    },
  };
}

function toolChoice(value: unknown): Options {
  if (value === 'none' || value === 'auto' || value === 'required') return { toolChoice: { type: value } };
  if (isObject(value) && isObject(value.function)) return { toolChoice: { type: 'tool', toolName: String(value.function.name) } };
  return {};
}
