import { isBlankKey, type Target } from '@plugboard/kernel';
import { headerSafeName, MAX_IGNORED_PARAMS } from '@plugboard/openai-protocol';
import type { CompletionRequest } from './request.js';
import type { KeySource } from './session-key.js';

/** What becomes of the fields of a request that are not its conversation. */
export interface Parameters {
  /** Sampling parameters for the model calls of the turn. */
  readonly params: Readonly<Record<string, unknown>>;
  /** For `x-ignored-params`: fields that were accepted and have no effect, in the order of the request. */
  readonly ignored: readonly string[];
}

/** Fields that this transport acts upon itself. */
const SERVED = new Set(['model', 'messages', 'stream', 'stream_options', 'n', 'modalities', 'metadata']);

/** Fields that go with every model call, where the target takes them. */
const SAMPLING = new Set([
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'stop',
  'seed',
  'response_format',
  'reasoning_effort',
  'verbosity',
  'prompt_cache_key',
]);

/** Fields that fit one model call and not an agent's many: they go to raw models only. */
const RAW_ONLY = new Set(['logit_bias', 'prediction', 'prompt_cache_options']);

/** An empty list of stop sequences is accepted, and means none (C-172). */
const isNoStop = (name: string, value: unknown) => name === 'stop' && Array.isArray(value) && value.length === 0;

/** Fields that mean something only beside tools that the caller brought. */
const BESIDE_TOOLS = new Set(['tool_choice', 'parallel_tool_calls']);

/** The reference's defaults: a field that says no more than its absence would is no loss. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  temperature: [1],
  top_p: [1],
  frequency_penalty: [0],
  presence_penalty: [0],
  logprobs: [false],
  reasoning_effort: ['medium'],
  verbosity: ['medium'],
  parallel_tool_calls: [true],
  service_tier: ['auto', 'default'],
  store: [false],
};

/**
 * Sorts the fields of a request by what becomes of them.
 *
 * @param passesTools whether tools of the caller's own go to the model.
 * @param keySources where the key of a session may come from.
 */
export function parametersOf(
  request: CompletionRequest,
  target: Target,
  passesTools: boolean,
  keySources: readonly KeySource[],
): Parameters {
  const params: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(request)) {
    if (SERVED.has(name) || isServedHere(name, passesTools, keySources) || isNoStop(name, value)) continue;
    if (reachesModel(name, request, target, passesTools)) params[name] = value;
    else if (ignored.length < MAX_IGNORED_PARAMS && !saysNothing(name, value, request)) ignored.push(headerSafeName(name));
  }
  return { params, ignored };
}

function isServedHere(name: string, passesTools: boolean, keySources: readonly KeySource[]): boolean {
  return name === 'tools' ? passesTools : (name === 'user' || name === 'session_id') && keySources.includes(name);
}

function reachesModel(name: string, request: CompletionRequest, target: Target, passesTools: boolean): boolean {
  if (name === 'max_tokens' && request.max_completion_tokens !== undefined) return false; // its successor wins
  const mayGo = SAMPLING.has(name) || (RAW_ONLY.has(name) && target.kind === 'model') || (BESIDE_TOOLS.has(name) && passesTools);
  return mayGo && target.forwardsParam(name);
}

/** Whether the field is at its default, so that nothing is lost where it has no effect. */
function saysNothing(name: string, value: unknown, request: CompletionRequest): boolean {
  switch (name) {
    case 'user':
    case 'session_id':
      return typeof value === 'string' && isBlankKey(value);
    case 'tools':
      return request.tools?.length === 0;
    case 'tool_choice':
      return value === 'auto' || (value === 'none' && request.tools === undefined);
    case 'response_format':
      return (value as { type: string }).type === 'text';
    default:
      return Object.hasOwn(DEFAULTS, name) && DEFAULTS[name]?.includes(value) === true;
  }
}
