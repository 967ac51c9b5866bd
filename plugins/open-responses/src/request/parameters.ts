import type { Target } from '@plugboard/kernel/contracts';
import { headerSafeName, MAX_IGNORED_PARAMS } from '@plugboard/turn-routes';
import type { ResponseRequest, TextFormat } from './request.js';

/** Fields that the server acts upon itself. */
const SERVED = new Set([
  'model',
  'input',
  'instructions',
  'previous_response_id',
  'conversation',
  'max_tool_calls',
  'truncation',
  'metadata',
  'user',
  'store',
  'stream',
  'stream_options',
  'background',
  'type',
  'stream_id',
  'generate',
]);

/** The element of `include` that asks for sealed reasoning. */
export const ENCRYPTED_REASONING = 'reasoning.encrypted_content';

/** Fields that are sent with every model call, and their names there. */
export const SAMPLING: Readonly<Record<string, string>> = {
  max_output_tokens: 'max_completion_tokens',
  temperature: 'temperature',
  top_p: 'top_p',
  frequency_penalty: 'frequency_penalty',
  presence_penalty: 'presence_penalty',
  prompt_cache_key: 'prompt_cache_key',
};

/** The protocol's defaults: a field with the default value is not reported as ignored. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  temperature: [1],
  top_p: [1],
  frequency_penalty: [0],
  presence_penalty: [0],
  top_logprobs: [0],
  parallel_tool_calls: [true],
  tool_choice: ['auto'],
  service_tier: ['auto', 'default'],
};

/**
 * Sorts the fields of a request that are not its conversation by their effect: `params` are
 * sampling parameters for the model calls of the turn, in the words of chat completions. `ignored`
 * are fields that were accepted and have no effect, for `x-ignored-params`.
 *
 * @param tools the caller's own tools that are sent to the model.
 * @param sealsReasoning whether the caller is sent what `include` asks for.
 */
export function parametersOf(
  request: ResponseRequest,
  target: Target,
  tools: { readonly declarations: readonly unknown[]; readonly choice: unknown },
  sealsReasoning: boolean,
): { readonly params: Readonly<Record<string, unknown>>; readonly ignored: readonly string[] } {
  const params: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(request)) {
    if (SERVED.has(name)) continue;
    const taken = parameterOf(name, request, target, tools);
    if (taken === 'served') continue;
    if (taken && target.forwardsParam(taken.name)) params[taken.name] = taken.value;
    else if (ignored.length < MAX_IGNORED_PARAMS && !saysNothing(name, value, sealsReasoning)) ignored.push(headerSafeName(name));
  }
  // One field of a request for two parameters of a model call.
  const { verbosity } = request.text ?? {};
  if (verbosity != null && target.forwardsParam('verbosity')) params.verbosity = verbosity;
  else if (verbosity != null) ignored.push('text.verbosity');
  if (request.reasoning?.context != null) ignored.push('reasoning.context');
  return { params, ignored };
}

/**
 * The model's name of a field; `served` if the server honours it otherwise; undefined if it has no
 * effect.
 */
function parameterOf(
  name: string,
  request: ResponseRequest,
  target: Target,
  { declarations, choice }: { readonly declarations: readonly unknown[]; readonly choice: unknown },
): { readonly name: string; readonly value: unknown } | 'served' | undefined {
  switch (name) {
    case 'tools':
      return target.clientTools !== 'ignore' || request.tools?.length === 0 ? 'served' : undefined;
    case 'tool_choice':
      return declarations.length > 0 && choice ? { name, value: choice } : undefined;
    case 'parallel_tool_calls':
      return declarations.length > 0 ? { name, value: request.parallel_tool_calls } : undefined;
    case 'text':
      return responseFormat(request.text?.format);
    case 'reasoning':
      return request.reasoning?.effort == null ? 'served' : { name: 'reasoning_effort', value: request.reasoning.effort };
    default: {
      const known = Object.hasOwn(SAMPLING, name) ? SAMPLING[name] : undefined;
      return known === undefined ? undefined : { name: known, value: request[name] };
    }
  }
}

function responseFormat(format: TextFormat | null | undefined) {
  if (format?.type !== 'json_schema') {
    return format?.type === 'json_object' ? { name: 'response_format', value: { type: 'json_object' } } : 'served';
  }
  const { name, description, schema, strict } = format;
  const json_schema = {
    name,
    ...(description != null && { description }),
    ...(schema != null && { schema }),
    ...(strict != null && { strict }),
  };
  return { name: 'response_format', value: { type: 'json_schema', json_schema } };
}

function saysNothing(name: string, value: unknown, sealsReasoning: boolean): boolean {
  if (name === 'include') return Array.isArray(value) && value.every((one) => sealsReasoning && one === ENCRYPTED_REASONING);
  if (name === 'tool_choice' && value === 'none') return true;
  return Object.hasOwn(DEFAULTS, name) && DEFAULTS[name]?.includes(value) === true;
}
