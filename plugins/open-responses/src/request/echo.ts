import type { RequestTool, ResponseRequest, TextFormat } from './request.js';

/**
 * The fields of a response that repeat its request, with the protocol's defaults: only what the
 * caller sent. The agent's own prompt and tools are never shown.
 */
export function echoOf(
  request: ResponseRequest,
  effective: {
    readonly previous: string | undefined;
    /** The opaque id of the session, where the request named one. */
    readonly conversation: string | undefined;
    readonly stored: boolean;
  },
): object {
  const { text, reasoning } = request;
  return {
    previous_response_id: effective.previous ?? null,
    instructions: request.instructions ?? null,
    tools: (request.tools ?? []).map(echoOfTool),
    tool_choice: request.tool_choice ?? 'auto',
    truncation: request.truncation ?? 'auto',
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    text: { format: formatOf(text?.format), ...(text?.verbosity != null && { verbosity: text.verbosity }) },
    top_p: request.top_p ?? 1,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    top_logprobs: request.top_logprobs ?? 0,
    temperature: request.temperature ?? 1,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    store: effective.stored,
    background: false,
    service_tier: 'default',
    metadata: request.metadata ?? {},
    safety_identifier: request.safety_identifier ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    ...(effective.conversation !== undefined && { conversation: { id: effective.conversation } }),
  };
}

function echoOfTool(tool: RequestTool): object {
  const { type, name = '', description, parameters, strict } = tool;
  if (type !== 'function') return tool;
  return { type, name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? null };
}

function formatOf(format: TextFormat | null | undefined): unknown {
  if (format?.type !== 'json_schema') return { type: format?.type ?? 'text' };
  const { type, name, description, schema, strict } = format;
  return { type, name, description: description ?? null, schema: schema ?? null, strict: strict ?? false };
}
