import {
  type Body,
  type Events,
  formatOf,
  isRecord,
  listOf,
  type NativeAnswer,
  type NativeRequest,
  namedEvent,
  Refused,
  refuseCombination,
  refuseIf,
  refuseMedia,
} from './native-server.js';
import { sign } from './signatures.js';

export const ANTHROPIC_KEY = 'sk-ant-api03-0123456789abcdef0123456789';
export const ANTHROPIC_MODEL = 'claude-opus-4-8';
const MODELS: ReadonlySet<unknown> = new Set([ANTHROPIC_MODEL, 'claude-sonnet-4-5', 'claude-next']);
const IMAGE_STARTS: Readonly<Record<string, string>> = {
  'image/png': 'iVBOR',
  'image/jpeg': '/9j/',
  'image/gif': 'R0lG',
  'image/webp': 'UklG',
};

/** The Messages API: `POST /v1/messages`. It signs thoughts over everything before them. */
export const anthropic = formatOf({
  check,
  events,
  frame: namedEvent,
  errorBody: ({ status, message }) => ({ type: 'error', error: { type: ERROR_TYPES[status] ?? 'api_error', message } }),
});

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
};

function check({ headers, body }: NativeRequest): void {
  const account = headers['x-api-key'];
  if (!String(account).startsWith('sk-ant-')) throw new Refused('invalid x-api-key', 401);
  if (!MODELS.has(body.model)) throw new Refused(`model: ${body.model}`, 404);
  refuseIf(typeof body.max_tokens !== 'number', 'max_tokens: Field required');
  const thinking = isRecord(body.thinking) ? body.thinking.type : undefined;
  if (body.model === ANTHROPIC_MODEL) {
    refuseIf(
      body.temperature !== undefined || body.top_p !== undefined,
      '`temperature` and `top_p` are not supported by this model.',
    );
    refuseIf(thinking === 'enabled', 'thinking.type: this model supports adaptive thinking only.');
  }
  const messages = listOf(body.messages);
  refuseIf(messages.length === 0, 'messages: at least one message is required');
  refuseIf(messages[0]?.role !== 'user', 'messages: first message must use the "user" role');
  refuseIf(messages.at(-1)?.role === 'assistant', 'This model does not support assistant message prefill.');
  const marks = JSON.stringify(body).match(/"cache_control":\{/g)?.length ?? 0;
  refuseIf(marks > 4, `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`);
  const ids = new Set<unknown>();
  for (const [index, message] of messages.entries()) {
    refuseIf(index > 0 && message.role === messages[index - 1]?.role, 'messages: roles must alternate');
    checkContent(messages, index, ids);
    if (message.role === 'assistant') checkThinking(body, messages, index, account, thinking === 'enabled');
  }
  refuseMedia(body);
  const tools = listOf(body.tools);
  refuseIf(new Set(tools.map(({ name }) => name)).size < tools.length, 'tools: Tool names must be unique.');
  for (const tool of tools) {
    refuseCombination(tool.input_schema, 'tools.0.custom.input_schema');
    const keys = Object.keys(
      isRecord(tool.input_schema) && isRecord(tool.input_schema.properties) ? tool.input_schema.properties : {},
    );
    refuseIf(
      keys.some((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key)),
      "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    );
    refuseIf(!/^[a-zA-Z0-9_-]{1,128}$/.test(String(tool.name)), 'tools: String should match pattern');
    refuseIf(!isRecord(tool.input_schema) || tool.input_schema.type !== 'object', 'tools.input_schema.type: Field required');
  }
}

function checkContent(messages: readonly Body[], index: number, ids: Set<unknown>): void {
  const content = blocks(messages[index]);
  const at = `messages.${index}.content`;
  refuseIf(content.length === 0, `${at}: messages must have non-empty content`);
  for (const block of content) {
    if (block.type === 'text')
      refuseIf(String(block.text).trim() === '', `${at}: text content blocks must contain non-whitespace text`);
    if (block.type === 'image' && isRecord(block.source) && block.source.type === 'base64') {
      const { media_type: type, data } = block.source;
      const start = IMAGE_STARTS[String(type)];
      refuseIf(
        start === undefined || !String(data).startsWith(start),
        `${at}: Image does not match the provided media type ${type}`,
      );
    }
    if (block.type === 'tool_use') {
      refuseIf(!/^[a-zA-Z0-9_-]+$/.test(String(block.id)), `${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
      refuseIf(!/^[a-zA-Z0-9_-]{1,128}$/.test(String(block.name)), `${at}.tool_use.name: String should match pattern`);
      refuseIf(ids.has(block.id), `${at}: \`tool_use\` ids must be unique`);
      refuseIf(!isRecord(block.input), `${at}.tool_use.input: Input should be a valid dictionary`);
      ids.add(block.id);
    }
  }
  const lastResult = content.findLastIndex(({ type }) => type === 'tool_result');
  refuseIf(
    content.slice(0, lastResult + 1).some(({ type }) => type !== 'tool_result'),
    `${at}: \`tool_result\` blocks must come first`,
  );
  const results = content.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => id);
  const asked = blocks(messages[index - 1])
    .filter(({ type }) => type === 'tool_use')
    .map(({ id }) => id);
  for (const id of asked)
    refuseIf(!results.includes(id), `${at}: \`tool_use\` ids were found without \`tool_result\` blocks: ${id}`);
  for (const id of results)
    refuseIf(!asked.includes(id), `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`);
}

function checkThinking(body: Body, messages: readonly Body[], index: number, account: unknown, isEnabled: boolean): void {
  const content = blocks(messages[index]);
  const at = `messages.${index}.content`;
  refuseIf(content.at(-1)?.type === 'thinking', `${at}: The final block in an assistant message cannot be \`thinking\`.`);
  for (const [position, { type, thinking, signature }] of content.entries()) {
    if (type !== 'thinking') continue;
    const prefix = [body.system, body.tools, messages.slice(0, index), content.slice(0, position)];
    const isValid = sign(account, body.model, prefix, String(thinking)) === signature;
    refuseIf(!isValid, `${at}.${position}: Invalid \`signature\` in \`thinking\` block: it does not match its prefix.`);
  }
  const isLast = index === messages.findLastIndex(({ role }) => role === 'assistant');
  const isInLoop = blocks(messages[index + 1]).some((block) => block.type === 'tool_result');
  const missesThought = isEnabled && isLast && isInLoop && content[0]?.type !== 'thinking';
  refuseIf(
    missesThought,
    `${at}.0.type: Expected \`thinking\`, but found \`${content[0]?.type}\`. When \`thinking\` is enabled, a final assistant message must start with a thinking block`,
  );
}

function blocks(message: Body | undefined): readonly Body[] {
  if (typeof message?.content === 'string') return [{ type: 'text', text: message.content }];
  return listOf(message?.content);
}

function* events(answer: NativeAnswer, { body, headers }: NativeRequest): Events<Body> {
  const [prompt, cached, tokens, thoughts, written = 0] = answer.usage ?? [10, 0, 5, 0];
  const usage = {
    input_tokens: prompt - cached - written,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: written,
    output_tokens: 1,
  };
  yield {
    type: 'message_start',
    message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], model: body.model, stop_reason: null, usage },
  };
  const content: Body[] = [];
  for (const thinking of answer.thinking ?? []) {
    const index = content.length;
    const prefix = [body.system, body.tools, body.messages, content];
    const signature = sign(headers['x-api-key'], body.model, prefix, thinking);
    yield { type: 'content_block_start', index, content_block: { type: 'thinking', thinking: '', signature: '' } };
    yield { type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking } };
    yield { type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } };
    yield { type: 'content_block_stop', index };
    content.push({ type: 'thinking', thinking, signature });
  }
  yield { type: 'ping' };
  if (answer.text) {
    const index = content.length;
    yield { type: 'content_block_start', index, content_block: { type: 'text', text: '' } };
    for (const text of answer.text)
      yield typeof text === 'function' ? text : { type: 'content_block_delta', index, delta: { type: 'text_delta', text } };
    yield { type: 'content_block_stop', index };
    content.push({ type: 'text', text: answer.text.join('') });
  }
  for (const [number, { id = `toolu_${number + 1}`, name, input }] of (answer.calls ?? []).entries()) {
    const index = content.length;
    yield { type: 'content_block_start', index, content_block: { type: 'tool_use', id, name, input: {} } };
    for (const partial_json of JSON.stringify(input).match(/.{1,7}/gs) ?? [])
      yield { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } };
    yield { type: 'content_block_stop', index };
    content.push({ type: 'tool_use', id, name, input });
  }
  if (answer.finish === null) return;
  const stop_reason = answer.finish ?? (answer.calls ? 'tool_use' : 'end_turn');
  yield {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: tokens, output_tokens_details: { thinking_tokens: thoughts } },
  };
  yield { type: 'message_stop' };
}
