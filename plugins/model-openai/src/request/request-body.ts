import type { ModelRequest, ToolDeclaration } from '@plugboard/kernel';

/** Makes the body of a request. Parameters are sent under the names they have. */
export function requestBody(model: string, request: ModelRequest): string {
  const { messages, params, tools, incremental } = request;
  return JSON.stringify({
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
