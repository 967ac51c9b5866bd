import type { ModelRequest } from '@plugboard/kernel';
import { type ToolDeclaration, TurnError } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';
import { type Dialect, TOKEN_PARAMS, type TokenParam } from '../provider/dialect.js';
import { wireMessages } from './conversation.js';
import { SchemaBudget, SchemaTooLarge } from './schema-budget.js';
import { toolSchema } from './tool-schema.js';

/** Makes the body of a request. @param fingerprint see `wireMessages`. */
export function requestBody(model: string, request: ModelRequest, dialect: Dialect, fingerprint: string): string | Buffer {
  const { messages, tools, incremental } = request;
  const isStream = incremental || dialect.alwaysStream;
  const body: Record<string, unknown> = {
    model,
    ...paramsOf(request, dialect),
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
  };
  for (const name of dialect.omit) delete body[name];
  Object.assign(body, dialect.body);
  const parts = [wellFormedJson(body).slice(0, -1)];
  if (tools.length > 0 && !dialect.omit.has('tools') && !('tools' in body)) parts.push(',"tools":', toolsText(tools, dialect));
  parts.push(',"messages":[');
  let before = '';
  for (const message of wireMessages(messages, dialect, fingerprint)) {
    parts.push(before, messageText(message));
    before = ',';
  }
  parts.push(']}');
  return joined(parts);
}

/** Longest body that is one text, in characters. */
const MAX_TEXT = 32 * 1024;

/** Joins the parts of a body: a large one as bytes, because its text would be copied twice more. */
function joined(parts: readonly string[]): string | Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  if (length <= MAX_TEXT) return parts.join('');
  const bytes = Buffer.allocUnsafe(parts.reduce((length, part) => length + Buffer.byteLength(part), 0));
  let at = 0;
  for (const part of parts) at += bytes.write(part, at);
  return bytes;
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
    const source = format.json_schema.schema;
    const translated = within('response_format', 'response_format', () => toolSchema(source, schema));
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

/** The JSON of the last translation of a list of tools. An agent has the same list in each turn. */
const toolTexts = new WeakMap<readonly ToolDeclaration[], { readonly dialect: Dialect; readonly text: string }>();

function toolsText(tools: readonly ToolDeclaration[], dialect: Dialect): string {
  const known = toolTexts.get(tools);
  if (known?.dialect === dialect) return known.text;
  const budget = new SchemaBudget(tools);
  const text = wellFormedJson(tools.map((tool, index) => toolOf(tool, index, dialect, budget)));
  toolTexts.set(tools, { dialect, text });
  return text;
}

function toolOf(tool: ToolDeclaration, index: number, dialect: Dialect, budget: SchemaBudget): object {
  const { name, description, inputSchema, strict } = tool;
  const parameters = within(`the tool '${name}'`, `tools[${index}]`, () => toolSchema(inputSchema, dialect.schema, budget));
  return { type: 'function', function: { name, description, parameters, ...(dialect.omit.has('strict') ? {} : { strict }) } };
}

/** @throws TurnError that names what has the schema, if its translation is too large. */
function within(owner: string, param: string, translate: () => object): object {
  try {
    return translate();
  } catch (error) {
    if (!(error instanceof SchemaTooLarge)) throw error;
    throw new TurnError('invalid_request', `The schema of ${owner} is too large: ${error.message}.`, { cause: error, param });
  }
}

/** How JSON.stringify begins the escape of a lone surrogate. It does not escape pairs. */
const LONE_SURROGATE = '\\ud';

/** JSON without lone surrogates, which cut texts have: model servers refuse a request with one. */
function wellFormedJson(value: object): string {
  const json = JSON.stringify(value);
  if (!json.includes(LONE_SURROGATE)) return json;
  return JSON.stringify(value, (_, inner) => (typeof inner === 'string' ? inner.toWellFormed() : inner));
}

/** Longest text that is kept, in characters: larger ones would double the memory of a turn. */
const MAX_KEPT_LENGTH = 16 * 1024;

/**
 * The key under which a message holds its text. The property is not enumerable: a copy of the
 * message may differ, and does not get it. A WeakMap of all messages in memory would make each
 * garbage collection, and each look at a message, slower.
 */
const TEXT = Symbol('text');

/**
 * Returns a message as JSON. A text of up to 16,384 characters is kept with the message, so that a
 * conversation is not serialized again for each request. The message must not change afterwards.
 * Nothing is kept with a frozen message.
 */
export function messageText(message: object): string {
  const known = (message as { readonly [TEXT]?: string })[TEXT];
  if (known !== undefined) return known;
  const text = wellFormedJson(message);
  if (text.length <= MAX_KEPT_LENGTH) Reflect.defineProperty(message, TEXT, { value: text });
  return text;
}
