import { isBlankKey, SAMPLING_PARAMETERS, type Target } from '@plugboard/kernel/contracts';
import { headerSafeName, MAX_IGNORED_PARAMS } from '@plugboard/turn-routes';
import type { KeySource } from './named-session.js';
import type { CompletionRequest } from './request.js';

/** The fields of a request that are not its conversation, by their effect. */
interface Parameters {
  /** Sampling parameters for the model calls of the turn. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Fields without effect, in request order, for `x-ignored-params`. */
  readonly ignored: readonly string[];
}

/** Fields handled by this transport. */
const HANDLED = new Set(['model', 'messages', 'stream', 'stream_options', 'n', 'modalities', 'metadata']);

/** Fields sent with every model call, if the target supports them. */
const SAMPLING: ReadonlySet<string> = new Set(SAMPLING_PARAMETERS);

/** Fields that make sense for a single model call only: sent to raw models, not to agents. */
const RAW_ONLY = new Set(['logit_bias', 'prediction', 'prompt_cache_options']);

/** An empty list of stop sequences is accepted, and means none (C-172). */
const isNoStop = (name: string, value: unknown) => name === 'stop' && Array.isArray(value) && value.length === 0;

/** Fields that mean something only beside tools that the caller brought. */
const WITH_CLIENT_TOOLS = new Set(['tool_choice', 'parallel_tool_calls']);

/** The reference's defaults. A field at its default is not reported as ignored. */
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
 * Sorts the fields of a request by their effect.
 *
 * @param passesTools whether client tools are sent to the model.
 * @param keySources where the session key may come from.
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
    if (HANDLED.has(name) || isHandled(name, passesTools, keySources) || isNoStop(name, value)) continue;
    if (reachesModel(name, request, target, passesTools)) params[name] = value;
    else if (ignored.length < MAX_IGNORED_PARAMS && !isDefault(name, value, request)) ignored.push(headerSafeName(name));
  }
  return { params, ignored };
}

function isHandled(name: string, passesTools: boolean, keySources: readonly KeySource[]): boolean {
  return name === 'tools' ? passesTools : (name === 'user' || name === 'session_id') && keySources.includes(name);
}

function reachesModel(name: string, request: CompletionRequest, target: Target, passesTools: boolean): boolean {
  if (name === 'max_tokens' && request.max_completion_tokens !== undefined) return false; // the newer name wins
  const mayGo =
    SAMPLING.has(name) || (RAW_ONLY.has(name) && target.kind === 'model') || (WITH_CLIENT_TOOLS.has(name) && passesTools);
  return mayGo && target.forwardsParam(name);
}

/** Whether the field has its default value, so that ignoring it loses nothing. */
function isDefault(name: string, value: unknown, request: CompletionRequest): boolean {
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
