import type { ModelRequest } from '@plugboard/kernel';
import { knownMessageJson, type ToolDeclaration } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';
import type { Dialect, TokenParam } from '../provider/dialect.js';
import { TOKEN_PARAMS } from '../provider/dialect.js';
import { wireMessages } from './conversation.js';
import { toolSchema } from './tool-schema.js';

/** Makes the body of a request. @param of the fingerprint of the model, see `wireMessages`. */
export function requestBody(model: string, request: ModelRequest, dialect: Dialect, of: string): string {
  const { messages, tools, incremental } = request;
  const isStream = incremental || dialect.alwaysStream;
  const body: Record<string, unknown> = {
    model,
    ...paramsOf(request, dialect),
    ...(tools.length > 0 ? { tools: tools.map((tool) => toolOf(tool, dialect)) } : {}),
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
  };
  for (const name of dialect.omit) delete body[name];
  const sent = wireMessages(messages, dialect, of).map((message) => jsonOf(message));
  return `${jsonOf(Object.assign(body, dialect.body)).slice(0, -1)},"messages":[${sent.join(',')}]}`;
}

function paramsOf({ params, tools }: ModelRequest, dialect: Dialect): Record<string, unknown> {
  const { tokenParam, schema } = dialect;
  const sent: Record<string, unknown> = { ...params };
  // Servers refuse parameters about tools in a request without tools.
  if (tools.length === 0) {
    delete sent.tool_choice;
    delete sent.parallel_tool_calls;
  }
  if (tokenParam !== undefined) renameTokenParam(sent, tokenParam);
  const { response_format: format } = sent;
  if (schema !== 'plain' && isObject(format) && isObject(format.json_schema) && isObject(format.json_schema.schema)) {
    const translated = toolSchema(format.json_schema.schema, schema);
    sent.response_format = { ...format, json_schema: { ...format.json_schema, schema: translated } };
  }
  return sent;
}

function renameTokenParam(params: Record<string, unknown>, wanted: TokenParam): void {
  for (const name of TOKEN_PARAMS) {
    if (name === wanted || params[name] === undefined) continue;
    params[wanted] ??= params[name];
    delete params[name];
  }
}

function toolOf({ name, description, inputSchema, strict }: ToolDeclaration, dialect: Dialect): object {
  const parameters = toolSchema(inputSchema, dialect.schema);
  return { type: 'function', function: { name, description, parameters, ...(dialect.omit.has('strict') ? {} : { strict }) } };
}

/**
 * Replaces half a surrogate pair, which a caller or a tool may have cut off, by U+FFFD. Model
 * servers refuse the whole request for it, and a session that contains one could not be continued.
 * In JSON it is an escape, so most values need no second pass.
 */
function jsonOf(value: object): string {
  const json = knownMessageJson(value) ?? JSON.stringify(value);
  if (!json.includes('\\ud')) return json;
  return JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? inner.toWellFormed() : inner));
}
