import { createAnthropic } from '@ai-sdk/anthropic';
import Anthropic from '@anthropic-ai/sdk';
import { APICallError, generateText, jsonSchema, Output, streamText, tool } from 'ai';
import t from 'tap';
import { TestServer } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const server = await TestServer.start(t, WITH_TOOLS.replace('  sse: {}\n', '  messages: {}\n'), toolFixtures);
const client = new Anthropic({ baseURL: server.url, apiKey: 'any', maxRetries: 0 });

const question = 'Where is the treasure?';
const request = (fields: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) => ({
  model: 'assistant',
  max_tokens: 1000,
  messages: [{ role: 'user' as const, content: question }],
  ...fields,
});
const hunt = [
  { text: 'Let me see.', toolCalls: [readTreasure], usage: { promptTokens: 10, completionTokens: 2 } },
  { text: ['Under', ' the', ' oak.'], usage: { promptTokens: 20, completionTokens: 3, cachedTokens: 5 } },
];
const weather: Anthropic.Tool = {
  name: 'weather',
  description: 'The weather at a place.',
  input_schema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
};

t.test('CL-20 @anthropic-ai/sdk: messages.create, with the agent’s own tools', async (t) => {
  server.models.enqueue(...hunt);
  const message = await client.messages.create(request());
  t.match(message, {
    type: 'message',
    model: 'assistant',
    content: [{ type: 'text', text: 'Under the oak.' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 25, cache_read_input_tokens: 5, output_tokens: 5 },
  });
  t.equal(message.content.length, 1);
  t.match(message._request_id, /^req_/);
  t.match(server.asked, { max_completion_tokens: 1000, messages: [{ role: 'system', content: 'You are the assistant.' }] });
});

t.test('CL-20 @anthropic-ai/sdk: stream: true', async (t) => {
  server.models.enqueue({ text: ['Under', ' the', ' oak.'] });
  const texts: string[] = [];
  const types = new Set<string>();
  for await (const event of await client.messages.create({ ...request(), stream: true })) {
    types.add(event.type);
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') texts.push(event.delta.text);
  }
  t.strictSame(texts, ['Under', ' the', ' oak.']);
  t.strictSame(
    [...types],
    ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'],
  );
});

t.test('CL-20 @anthropic-ai/sdk: the helper messages.stream', async (t) => {
  server.models.enqueue(...hunt);
  const stream = client.messages.stream(request());
  const texts: string[] = [];
  stream.on('text', (text) => texts.push(text));
  const message = await stream.finalMessage();
  t.strictSame(texts, ['Let me see.', 'Under', ' the', ' oak.']);
  t.match(message, { stop_reason: 'end_turn', usage: { input_tokens: 25, output_tokens: 5 } });
  t.equal(await stream.finalText(), 'Let me see. Under the oak.');
});

t.test('CL-22 @anthropic-ai/sdk: tools of the client, also two at once and beside those of the agent', async (t) => {
  const calls = ['Oslo', 'Rome'].map((place) => ({ name: 'weather', arguments: { place } }));
  server.models.enqueue({ text: 'I ask.', toolCalls: [...calls, readTreasure] }, { text: 'Cold and warm.' });
  const first = await client.messages.stream(request({ tools: [weather] })).finalMessage();
  t.equal(first.stop_reason, 'tool_use');
  const uses = first.content.filter((block) => block.type === 'tool_use');
  t.match(uses, [
    { name: 'weather', input: { place: 'Oslo' } },
    { name: 'weather', input: { place: 'Rome' } },
  ]);
  const results = uses.map(({ id }, index) => ({
    type: 'tool_result' as const,
    tool_use_id: id,
    content: index === 0 ? '-5' : '25',
  }));
  const messages = [
    { role: 'user' as const, content: question },
    { role: 'assistant' as const, content: first.content },
    { role: 'user' as const, content: results },
  ];
  const second = await client.messages.create(request({ tools: [weather], messages }));
  t.match(second.content, [{ type: 'text', text: 'Cold and warm.' }]);
  t.match(server.asked.messages.slice(2), [
    { role: 'assistant', content: 'I ask.', tool_calls: [{}, {}, {}] },
    { role: 'tool', content: '-5' },
    { role: 'tool', content: '25' },
    { role: 'tool', content: /treasure/ },
  ]);
});

t.test('CL-22 @anthropic-ai/sdk: the tool runner', async (t) => {
  server.models.enqueue({ toolCalls: [{ name: 'weather', arguments: { place: 'Oslo' } }] }, { text: 'Cold.' });
  const runner = client.beta.messages.toolRunner({
    ...request(),
    tools: [{ ...weather, parse: (input: unknown) => input, run: async () => '-5' }],
  });
  t.match(await runner, { content: [{ type: 'text', text: 'Cold.' }] });
});

t.test('CL-23 @anthropic-ai/sdk: blocks of the agent’s own tools, with the beta header', async (t) => {
  server.models.enqueue(...hunt);
  const message = await client.beta.messages.create({ ...request(), betas: ['mcp-client-2025-11-20'] });
  t.match(message.content, [
    { type: 'text', text: 'Let me see.' },
    { type: 'mcp_tool_use', server_name: 'files', name: 'read_text_file', input: { path: 'treasure.txt' } },
    { type: 'mcp_tool_result', is_error: false, content: [{ type: 'text', text: /oak/ }] },
    { type: 'text', text: 'Under the oak.' },
  ]);
});

t.test('CL-24 @anthropic-ai/sdk: every error has its class', async (t) => {
  const of = (fields: object) => client.messages.create(request(fields)).catch((error: unknown) => error);
  const invalid = await of({ temperature: 7 });
  t.ok(invalid instanceof Anthropic.BadRequestError);
  t.match(invalid, { status: 400, type: 'invalid_request_error', requestID: /^req_/, error: { request_id: /^req_/ } });
  const unknown = await of({ model: 'nobody' });
  t.ok(unknown instanceof Anthropic.NotFoundError);
  server.models.enqueue({ hangUp: true }, { hangUp: true }, { hangUp: true });
  const failed = await of({ model: 'bare' });
  t.ok(failed instanceof Anthropic.InternalServerError);
  t.match(failed, { status: 500, type: 'api_error' });
});

t.test('CL-24 @anthropic-ai/sdk: a stream that fails throws', async (t) => {
  server.models.enqueue({ text: ['Under', ' the', ' oak.'], cut: { afterEvents: 2 } });
  const stream = client.messages.stream(request({ model: 'bare' }));
  await t.rejects(stream.finalMessage(), Anthropic.APIError);
});

t.test('CL-25 @anthropic-ai/sdk: a thread becomes whole conversations', async (t) => {
  const about = { model: 'bare', max_tokens: 100 };
  const refused = await client.beta.messages
    .thread(about)
    .send({ role: 'user', content: 'First' })
    .then(undefined, (error: unknown) => error);
  t.ok(refused instanceof Anthropic.ThreadUnsupportedRequestError);
  server.models.enqueue({ text: 'One.' }, { text: 'Two.' });
  const thread = client.beta.messages.thread({ ...about, unsupportedRequestBehavior: 'continue_unthreaded' });
  t.match(await thread.send({ role: 'user', content: 'First' }), { content: [{ text: 'One.' }] });
  t.match(await thread.send({ role: 'user', content: 'Second' }), { content: [{ text: 'Two.' }] });
  t.strictSame(
    server.asked.messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
});

t.test('CL-26 @anthropic-ai/sdk: models and countTokens', async (t) => {
  const ids: string[] = [];
  for await (const { id } of client.models.list({ limit: 2 })) ids.push(id);
  t.strictSame(ids, ['assistant', 'bare', 'fast']);
  t.match(await client.models.retrieve('bare'), { type: 'model', id: 'bare' });
  t.match(await client.messages.countTokens({ model: 'assistant', messages: request().messages }), { input_tokens: 15 });
});

t.test('CL-27 @anthropic-ai/sdk: a session by its header', async (t) => {
  server.models.enqueue({ text: 'Hello, Ada.' }, { text: 'Ada.' });
  const headers = { 'X-Session-Id': 'ada' };
  await client.messages.create(request({ messages: [{ role: 'user', content: 'I am Ada.' }] }), { headers });
  await client.messages.create(request({ messages: [{ role: 'user', content: 'Who am I?' }] }), { headers });
  t.match(server.asked.messages.slice(1), [{ content: 'I am Ada.' }, { content: 'Hello, Ada.' }, { content: 'Who am I?' }]);
});

t.test('CL-28 @anthropic-ai/sdk: thinking is shown, and dropped when it comes back', async (t) => {
  server.models.enqueue({ reasoning: ['Hm', '.'], text: 'Yes.' }, { text: 'Still yes.' });
  const thinking = { type: 'enabled', budget_tokens: 1024 } as const;
  const first = await client.messages.stream(request({ thinking, max_tokens: 2000 })).finalMessage();
  t.match(first.content, [
    { type: 'thinking', thinking: 'Hm.', signature: /./ },
    { type: 'text', text: 'Yes.' },
  ]);
  const messages = [
    { role: 'user' as const, content: 'Sure?' },
    { role: 'assistant' as const, content: first.content },
    { role: 'user' as const, content: 'Really?' },
  ];
  await client.messages.create(request({ messages, thinking, max_tokens: 2000 }));
  t.strictSame(server.asked.messages.slice(1), [
    { role: 'user', content: 'Sure?' },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: 'Really?' },
  ]);
});

t.test('CL-21 @anthropic-ai/sdk: the model gets its thinking back between the steps of the client', async (t) => {
  const think = (words: string, id: string) => ({
    reasoning: words,
    toolCalls: [{ id, name: 'weather', arguments: { place: 'Rome' } }],
  });
  server.models.enqueue(think('First.', 'call_w1'), think('Second.', 'call_w2'), { text: 'Sunny.' });
  const thinking = { type: 'adaptive', display: 'omitted' } as const;
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Weather?' }];
  for (let step = 1; step <= 3; step++) {
    const { content } = await client.messages
      .stream({ ...request({ messages, tools: [weather], max_tokens: 2000 }), thinking } as Anthropic.MessageStreamParams)
      .finalMessage();
    const results = content.flatMap((block) =>
      block.type === 'tool_use' ? [{ type: 'tool_result' as const, tool_use_id: block.id, content: 'sun' }] : [],
    );
    messages.push({ role: 'assistant', content }, { role: 'user', content: results });
  }
  t.match(
    server.asked.messages.filter(({ role }) => role === 'assistant'),
    [{ reasoning_content: 'First.' }, { reasoning_content: 'Second.' }],
  );
});

const plugboard = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'any' });
const model = plugboard('assistant');

t.test('CL-20 @ai-sdk/anthropic: generateText and streamText', async (t) => {
  server.models.enqueue(...hunt, { text: ['Under', ' the', ' oak.'], usage: { promptTokens: 20, completionTokens: 3 } });
  const { text, finishReason, usage } = await generateText({ model, prompt: question, instructions: 'Be brief.' });
  t.strictSame([text, finishReason], ['Under the oak.', 'stop']);
  t.match(usage, { inputTokens: 30, outputTokens: 5 });
  t.match(server.asked.messages[0], { role: 'system', content: 'Be brief.' });
  const result = streamText({ model, prompt: question });
  const deltas: string[] = [];
  for await (const delta of result.textStream) deltas.push(delta);
  t.strictSame(deltas, ['Under', ' the', ' oak.']);
  t.match(await result.usage, { inputTokens: 20, outputTokens: 3 });
});

t.test('CL-22 @ai-sdk/anthropic: tools of the client, and structured output', async (t) => {
  server.models.enqueue({ toolCalls: [{ name: 'weather', arguments: { place: 'Oslo' } }] });
  const schema = jsonSchema<{ place: string }>({
    type: 'object',
    properties: { place: { type: 'string' } },
    required: ['place'],
  });
  const tools = { weather: tool({ inputSchema: schema, execute: async () => '-5' }) };
  const first = streamText({ model, prompt: question, tools });
  await first.consumeStream();
  t.match(await first.toolCalls, [{ toolName: 'weather', input: { place: 'Oslo' } }]);
  t.match(await first.toolResults, [{ output: '-5' }]);
  server.models.enqueue({ text: '{"place":"under the oak"}' });
  const { output } = await generateText({
    model,
    prompt: question,
    output: Output.object({ schema }),
    providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } },
  });
  t.match(output, { place: /oak/ });
  t.match(server.asked, { response_format: { type: 'json_schema', json_schema: { schema: { properties: { place: {} } } } } });
});

t.test('CL-24 @ai-sdk/anthropic: an error', async (t) => {
  const error = await generateText({ model: plugboard('nobody'), prompt: question, maxRetries: 0 }).catch(
    (error: unknown) => error,
  );
  t.ok(APICallError.isInstance(error) && error.statusCode === 404);
});

t.test('CL-20 a cancelled stream of either client ends the request to the model', async (t) => {
  const never = new Promise<never>(() => {});
  const cancelled = async (read: () => Promise<unknown>) => {
    server.models.enqueue({ text: ['Under', never] });
    const number = server.models.requests.length + 1;
    await read();
    t.equal(await (await server.models.received(number)).ended, 'aborted');
  };
  await cancelled(async () => {
    const stream = client.messages.stream(request());
    stream.on('text', () => stream.abort());
    await t.rejects(stream.finalMessage(), { message: 'Request was aborted.' });
  });
  await cancelled(async () => {
    const stop = new AbortController();
    const model = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'any' })('assistant');
    const parts: string[] = [];
    for await (const { type } of streamText({ model, prompt: question, abortSignal: stop.signal }).fullStream) {
      parts.push(type);
      if (type === 'text-delta') stop.abort();
    }
    t.equal(parts.at(-1), 'abort');
  });
});
