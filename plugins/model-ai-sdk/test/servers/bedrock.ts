import { crc32 } from 'node:zlib';
import {
  type Body,
  type Events,
  FUNCTION_NAME,
  formatOf,
  isRecord,
  listOf,
  type NativeAnswer,
  type NativeRequest,
  Refused,
  refuseCombination,
  refuseIf,
  refuseMedia,
} from './native-server.js';
import { sign } from './signatures.js';

export const BEDROCK_KEY = 'bedrock-api-key-0123456789abcdef';
export const BEDROCK_MODEL = 'anthropic.claude-opus-4-8-v1:0';

/** The Converse API: `POST /model/<model>/converse-stream`, answered with binary events (AI-11). */
export const bedrock = formatOf<readonly [type: string, data: object]>({
  contentType: 'application/vnd.amazon.eventstream',
  check,
  events,
  frame: ([type, data]) => frame(type, data),
  errorBody: ({ message }) => ({ message }),
});

/** One message of the event stream, with two checksums. */
export function frame(type: string, data: object, messageType: 'event' | 'exception' = 'event'): Uint8Array {
  const headers = Buffer.concat(
    Object.entries({ [`:${messageType}-type`]: type, ':content-type': 'application/json', ':message-type': messageType }).map(
      ([name, value]) =>
        Buffer.concat([
          Buffer.from([name.length]),
          Buffer.from(name),
          Buffer.from([7]),
          uint16(value.length),
          Buffer.from(value),
        ]),
    ),
  );
  const payload = Buffer.from(JSON.stringify(data));
  const prelude = Buffer.concat([uint32(16 + headers.length + payload.length), uint32(headers.length)]);
  const start = Buffer.concat([prelude, uint32(crc32(prelude)), headers, payload]);
  return Buffer.concat([start, uint32(crc32(start))]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function check({ path, headers, body }: NativeRequest): void {
  const account = headers.authorization;
  if (!String(account).startsWith('Bearer bedrock-'))
    throw new Refused('The security token included in the request is invalid.', 403);
  if (!decodeURIComponent(path).includes(BEDROCK_MODEL)) throw new Refused('The provided model identifier is invalid.', 400);
  const messages = listOf(body.messages);
  refuseIf(messages.length === 0 || messages[0]?.role !== 'user', 'A conversation must start with a user message.');
  refuseIf(messages.at(-1)?.role === 'assistant', 'This model does not support assistant message prefill.');
  refuseIf(JSON.stringify(body).includes('cache_control'), 'extraneous key [cache_control] is not permitted');
  const marks = JSON.stringify(body).match(/"cachePoint":\{/g)?.length ?? 0;
  refuseIf(marks > 4, 'You have exceeded the maximum number of cache points.');
  refuseMedia(body);
  for (const { toolSpec } of listOf(isRecord(body.toolConfig) ? body.toolConfig.tools : [])) {
    if (!isRecord(toolSpec)) continue;
    refuseIf(
      !FUNCTION_NAME.test(String(toolSpec.name)),
      "Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint",
    );
    refuseCombination(isRecord(toolSpec.inputSchema) ? toolSpec.inputSchema.json : {}, 'tools.0.custom');
  }
  const documents = messages.flatMap(({ content }) =>
    listOf(content).flatMap(({ document }) => (isRecord(document) ? [document.name] : [])),
  );
  refuseIf(new Set(documents).size < documents.length, "Messages can't contain duplicate document names.");
  const uses = messages.flatMap(({ content }) => listOf(content).flatMap(({ toolUse }) => (isRecord(toolUse) ? [toolUse] : [])));
  refuseIf(new Set(uses.map(({ toolUseId }) => toolUseId)).size < uses.length, '`tool_use` ids must be unique');
  for (const { toolUseId, name, input } of uses) {
    refuseIf(
      !FUNCTION_NAME.test(String(toolUseId)),
      `Value '${toolUseId}' at 'messages.1.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint`,
    );
    refuseIf(
      !FUNCTION_NAME.test(String(name)),
      `Value '${name}' at 'messages.1.member.content.1.member.toolUse.name' failed to satisfy constraint`,
    );
    refuseIf(
      !isRecord(input),
      'The format of the value at messages.1.content.1.toolUse.input is invalid. Provide a json object for the field.',
    );
  }
  const isToolUsed = messages.some(({ content }) => listOf(content).some(({ toolUse }) => toolUse !== undefined));
  refuseIf(
    isToolUsed && body.toolConfig === undefined,
    'The toolConfig field must be defined when using toolUse and toolResult content blocks.',
  );
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}.content`;
    const content = listOf(message.content);
    refuseIf(
      index > 0 && message.role === messages[index - 1]?.role,
      'A conversation must alternate between user and assistant roles.',
    );
    refuseIf(content.length === 0, `The content field in the Message object at messages.${index} is empty.`);
    for (const [position, block] of content.entries()) {
      refuseIf(
        typeof block.text === 'string' && block.text.trim() === '',
        `The text field in the ContentBlock object at ${at}.${position} is blank.`,
      );
      const afterThought = block.cachePoint !== undefined && content[position - 1]?.reasoningContent !== undefined;
      refuseIf(afterThought, `${at}.${position}: cachePoint cannot be inserted after reasoning block.`);
      if (isRecord(block.reasoningContent) && isRecord(block.reasoningContent.reasoningText)) {
        const { text, signature } = block.reasoningContent.reasoningText;
        const prefix = [body.system, body.toolConfig, messages.slice(0, index), content.slice(0, position)];
        refuseIf(
          sign(account, BEDROCK_MODEL, prefix, String(text)) !== signature,
          `${at}.${position}: Invalid signature in reasoning block.`,
        );
      }
    }
    const isLast = index === messages.findLastIndex(({ role }) => role === 'assistant');
    const isInLoop = listOf(messages[index + 1]?.content).some(({ toolResult }) => toolResult !== undefined);
    const thinks = JSON.stringify(body.additionalModelRequestFields ?? {}).includes('"enabled"');
    refuseIf(
      thinks && isLast && isInLoop && content[0]?.reasoningContent === undefined,
      `${at}.0.type: Expected \`thinking\`. When \`thinking\` is enabled, a final assistant message must start with a thinking block`,
    );
    const results = content.flatMap(({ toolResult }) => (isRecord(toolResult) ? [toolResult.toolUseId] : []));
    const asked = listOf(messages[index - 1]?.content).flatMap(({ toolUse }) => (isRecord(toolUse) ? [toolUse.toolUseId] : []));
    refuseIf(
      asked.length !== results.length || !asked.every((id) => results.includes(id)),
      `Expected toolResult blocks at ${at} for the following Ids: ${asked}`,
    );
  }
}

function* events(answer: NativeAnswer, { body, headers }: NativeRequest): Events<readonly [type: string, data: object]> {
  yield ['messageStart', { role: 'assistant' }];
  const content: Body[] = [];
  for (const text of answer.thinking ?? []) {
    const contentBlockIndex = content.length;
    const signature = sign(headers.authorization, BEDROCK_MODEL, [body.system, body.toolConfig, body.messages, content], text);
    yield ['contentBlockDelta', { contentBlockIndex, delta: { reasoningContent: { text } } }];
    yield ['contentBlockDelta', { contentBlockIndex, delta: { reasoningContent: { signature } } }];
    yield ['contentBlockStop', { contentBlockIndex }];
    content.push({ reasoningContent: { reasoningText: { text, signature } } });
  }
  if (answer.text) {
    const contentBlockIndex = content.length;
    for (const text of answer.text)
      yield typeof text === 'function' ? text : ['contentBlockDelta', { contentBlockIndex, delta: { text } }];
    yield ['contentBlockStop', { contentBlockIndex }];
    content.push({ text: answer.text.join('') });
  }
  for (const [number, { id = `tooluse_${number + 1}`, name, input }] of (answer.calls ?? []).entries()) {
    const contentBlockIndex = content.length;
    yield ['contentBlockStart', { contentBlockIndex, start: { toolUse: { toolUseId: id, name } } }];
    for (const part of JSON.stringify(input).match(/.{1,7}/gs) ?? [])
      yield ['contentBlockDelta', { contentBlockIndex, delta: { toolUse: { input: part } } }];
    yield ['contentBlockStop', { contentBlockIndex }];
    content.push({ toolUse: { toolUseId: id, name, input } });
  }
  if (answer.finish === null) return;
  yield ['messageStop', { stopReason: answer.finish ?? (answer.calls ? 'tool_use' : 'end_turn') }];
  const [prompt, cached, tokens, , written = 0] = answer.usage ?? [10, 0, 5, 0];
  const usage = {
    inputTokens: prompt - cached - written,
    cacheReadInputTokens: cached,
    cacheWriteInputTokens: written,
    outputTokens: tokens,
    totalTokens: prompt + tokens,
  };
  yield ['metadata', { usage, metrics: { latencyMs: 1 } }];
}
