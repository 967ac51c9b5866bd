import type { ModelRequest } from '@plugboard/kernel';
import { type ToolDeclaration, TurnError } from '@plugboard/kernel/contracts';
import { isObject } from '../json/json.js';
import { type Dialect, TOKEN_PARAMS, type TokenParam } from '../provider/dialect.js';
import { wireMessages } from './conversation.js';
import { SchemaBudget, SchemaTooLarge } from './schema-budget.js';
import { toolSchema } from './tool-schema.js';

/** Makes the body of a request. @param fingerprint see `wireMessages`. */
export function requestBody(model: string, request: ModelRequest, dialect: Dialect, fingerprint: string): string {
  const { messages, tools, incremental } = request;
  const isStream = incremental || dialect.alwaysStream;
  const body: Record<string, unknown> = {
    model,
    ...paramsOf(request, dialect),
    ...(isStream ? { stream: true, stream_options: { include_usage: true } } : { stream: false }),
  };
  for (const name of dialect.omit) delete body[name];
  Object.assign(body, dialect.body);
  const lists: Lists = { messages: wireMessages(messages, dialect, fingerprint) };
  if (tools.length > 0 && !dialect.omit.has('tools') && !('tools' in body)) lists.tools = wireTools(tools, dialect);
  const json = join(body, lists, (_, text) => text);
  return json.includes(LONE_SURROGATE) ? join(body, lists, wellFormed) : json;
}

/** The fields of a body whose text is known from earlier requests. */
interface Lists {
  readonly messages: readonly object[];
  tools?: readonly object[];
}

/** @param encode makes the final text of a value from its JSON. */
function join(body: object, { messages, tools }: Lists, encode: (value: object, json: string) => string): string {
  const beside = tools === undefined ? '' : `,"tools":${encode(tools, toolTexts.get(tools) ?? JSON.stringify(tools))}`;
  let listed = '';
  for (const message of messages) listed += `${listed === '' ? '' : ','}${encode(message, messageText(message))}`;
  return `${encode(body, JSON.stringify(body)).slice(0, -1)}${beside},"messages":[${listed}]}`;
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

/** The last translation of a list of tools. An agent has the same list in each of its turns. */
const knownTools = new WeakMap<readonly ToolDeclaration[], { readonly dialect: Dialect; readonly sent: readonly object[] }>();
/** The JSON of translated lists. */
const toolTexts = new WeakMap<object, string>();

function wireTools(tools: readonly ToolDeclaration[], dialect: Dialect): readonly object[] {
  const known = knownTools.get(tools);
  if (known?.dialect === dialect) return known.sent;
  const budget = new SchemaBudget(tools);
  const sent = tools.map((tool, index) => toolOf(tool, index, dialect, budget));
  knownTools.set(tools, { dialect, sent });
  toolTexts.set(sent, JSON.stringify(sent));
  return sent;
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

/** Replaces lone surrogates, which cut texts have: model servers refuse a request with one. */
function wellFormed(value: object, json: string): string {
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
  const text = JSON.stringify(message);
  if (text.length <= MAX_KEPT_LENGTH) Reflect.defineProperty(message, TEXT, { value: text });
  return text;
}
