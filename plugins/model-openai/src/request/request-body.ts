import type { ModelRequest, ToolDeclaration } from '@plugboard/kernel';

/** Makes the body of a request. Parameters are sent under the names they have. */
export function requestBody(model: string, request: ModelRequest): string {
  const { messages, params, tools, incremental } = request;
  return jsonOf({
    model,
    messages,
    ...params,
    // Servers refuse parameters about tools in a request without tools.
    ...(tools.length > 0 ? { tools: tools.map(toolOf) } : { tool_choice: undefined, parallel_tool_calls: undefined }),
    ...(incremental ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
  });
}

function toolOf({ name, description, inputSchema, strict }: ToolDeclaration): object {
  return { type: 'function', function: { name, description, parameters: inputSchema, strict } };
}

/**
 * Replaces half a surrogate pair, which a caller or a tool may have cut off, by U+FFFD. Model servers refuse the whole request for
 * it, and a session that contains one could not be continued. In JSON it is an escape, so most bodies need no second pass.
 */
function jsonOf(body: object): string {
  const json = JSON.stringify(body);
  return json.includes('\\ud')
    ? JSON.stringify(body, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value))
    : json;
}
