import type { ModelRequest, ToolDeclaration } from '@plugboard/kernel';
import type { OpenAiConfig } from './config.js';

/** The body of a request. What the parameters mean is the model server's business: they go through by the names that they have. */
export function requestBody(model: string, request: ModelRequest): string {
  const { messages, params, tools, incremental } = request;
  return JSON.stringify({
    model,
    messages,
    ...params,
    // Servers refuse what is said about tools where there are none.
    ...(tools.length > 0 ? { tools: tools.map(toolOf) } : { tool_choice: undefined, parallel_tool_calls: undefined }),
    ...(incremental ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
  });
}

function toolOf({ name, description, inputSchema, strict }: ToolDeclaration): object {
  return { type: 'function', function: { name, description, parameters: inputSchema, strict } };
}

/** The headers that every request of a connection has. Names are in lower case, so that what is said twice is sent once. */
export function standingHeaders(config: OpenAiConfig): Readonly<Record<string, string>> {
  return withHeaders(
    {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'user-agent': 'plugboard',
      ...(config.apiKey ? { authorization: `Bearer ${config.apiKey}` } : {}),
    },
    config.headers,
  );
}

export function withHeaders(
  headers: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  let all: Record<string, string> | undefined;
  for (const name in more) {
    all ??= { ...headers };
    all[name.toLowerCase()] = more[name] as string;
  }
  return all ?? headers;
}
