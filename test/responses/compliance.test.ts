/**
 * One test for each of the 17 tests of the public Open Responses compliance suite: ten over HTTP,
 * seven over WebSocket. The suite is not published as a package, so it cannot run here;
 * docs/reference/live.md says how it was run. Each test has the suite's id as its name, sends a
 * request of the same shape, and checks the same fields.
 */
import t from 'tap';
import { z } from 'zod';
import { liveConfig } from '../support/live.js';
import { LiveSocket, textOf } from '../support/live-socket.js';
import { TestServer } from '../support/test-server.js';

const nullableText = z.string().nullable();
const nullableInteger = z.number().int().nullable();
const status = z.enum(['in_progress', 'completed', 'incomplete']);

const message = z.object({
  type: z.literal('message'),
  id: z.string(),
  status,
  role: z.literal('assistant'),
  content: z.array(
    z.object({
      type: z.literal('output_text'),
      text: z.string(),
      annotations: z.array(z.unknown()),
      logprobs: z.array(z.unknown()),
    }),
  ),
});
const functionCall = z.object({
  type: z.literal('function_call'),
  id: z.string(),
  call_id: z.string(),
  name: z.string(),
  arguments: z.string(),
  status,
});
const compaction = z.object({ type: z.literal('compaction'), id: z.string(), encrypted_content: z.string() });
const usage = z.object({
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  total_tokens: z.number().int(),
  input_tokens_details: z.object({ cached_tokens: z.number().int() }),
  output_tokens_details: z.object({ reasoning_tokens: z.number().int() }),
});

/** The `response` object: all 31 fields are required. */
const responseResource = z.object({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.number().int(),
  completed_at: nullableInteger,
  status: z.enum(['queued', 'in_progress', 'completed', 'failed', 'incomplete']),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: nullableText,
  instructions: nullableText,
  output: z.array(z.discriminatedUnion('type', [message, functionCall])),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(
    z.object({
      type: z.literal('function'),
      name: z.string(),
      description: nullableText,
      parameters: z.record(z.string(), z.unknown()).nullable(),
      strict: z.boolean().nullable(),
    }),
  ),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.object({ type: z.string() })]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format: z.object({ type: z.string() }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.number().int(),
  temperature: z.number(),
  reasoning: z.object({ effort: nullableText, summary: nullableText }).nullable(),
  usage: usage.nullable(),
  max_output_tokens: nullableInteger,
  max_tool_calls: nullableInteger,
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: nullableText,
  prompt_cache_key: nullableText,
});
const compactResource = z.object({
  id: z.string(),
  object: z.literal('response.compaction'),
  created_at: z.number().int(),
  output: z.array(z.union([compaction, message])).min(1),
  usage,
});

const numbered = { sequence_number: z.number().int() };
const stateEvent = { ...numbered, response: responseResource };
const itemEvent = { ...numbered, output_index: z.number().int(), item: z.discriminatedUnion('type', [message, functionCall]) };
const inItem = { ...numbered, output_index: z.number().int(), item_id: z.string() };
const inPart = { ...inItem, content_index: z.number().int() };
const part = message.shape.content.element;
const logprobs = z.array(z.unknown());

/**
 * The events of the core protocol that a text answer consists of. Any other type fails, as it does
 * in the suite.
 */
const coreEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('response.created'), ...stateEvent }),
  z.object({ type: z.literal('response.in_progress'), ...stateEvent }),
  z.object({ type: z.literal('response.completed'), ...stateEvent }),
  z.object({ type: z.literal('response.output_item.added'), ...itemEvent }),
  z.object({ type: z.literal('response.output_item.done'), ...itemEvent }),
  z.object({ type: z.literal('response.content_part.added'), ...inPart, part }),
  z.object({ type: z.literal('response.content_part.done'), ...inPart, part }),
  z.object({ type: z.literal('response.output_text.delta'), ...inPart, delta: z.string(), logprobs }),
  z.object({ type: z.literal('response.output_text.done'), ...inPart, text: z.string(), logprobs }),
]);

/** The event for a request that is not accepted. The suite requires a code in it. */
const errorEvent = z.object({
  type: z.literal('error'),
  status: z.number().int(),
  error: z.object({ type: z.string(), code: z.string(), message: z.string(), param: nullableText }),
});

const app = await TestServer.start(t, liveConfig());
const model = 'assistant';
const post = (path: string, body: object) => app.request('POST', path, {}, body);

/** A response object that matches the schema, is completed and has output. */
async function completed(body: object) {
  const reply = await post('/v1/responses', { model, ...body });
  const response = responseResource.parse(reply.body);
  t.equal(response.status, 'completed');
  t.ok(response.output.length > 0);
  return response;
}

/** One turn on a socket, whose every event matches the schema. */
async function turn(live: LiveSocket, body: object) {
  live.create({ model, ...body });
  const events = (await live.turn()).map((event) => coreEvent.parse(event));
  const last = events.at(-1);
  if (last?.type !== 'response.completed') throw new Error(`not completed: ${last?.type}`);
  return { events, response: last.response };
}

/** The error of a request on a socket that is not accepted, whose event matches the schema. */
async function refusal(live: LiveSocket, body: object) {
  const event = await live.refuse({ model, ...body });
  return errorEvent.parse(event);
}

t.test('basic-response: a user message is answered by a valid response object', async (t) => {
  const response = await completed({ input: [{ type: 'message', role: 'user', content: 'Say hello in exactly 3 words.' }] });
  t.equal(response.output[0]?.type, 'message');
});

t.test('assistant-phase: history with phase labels is accepted', async () => {
  await completed({
    input: [
      { type: 'message', role: 'assistant', phase: 'commentary', content: 'I should answer with the number.' },
      { type: 'message', role: 'assistant', phase: 'final_answer', content: 'The number is four.' },
      { type: 'message', role: 'user', content: 'Repeat only the number.' },
    ],
  });
});

t.test('response-output-phase-schema: output with phase labels matches the schema, and is taken back as input', async (t) => {
  const output = ['commentary', 'final_answer'].map((phase, at) => ({
    id: `msg_${at}`,
    type: 'message',
    status: 'completed',
    role: 'assistant',
    phase,
    content: [{ type: 'output_text', text: phase, annotations: [], logprobs: [] }],
  }));
  for (const item of output) t.ok(message.loose().safeParse(item).success);
  await completed({ input: [...output, { role: 'user', content: 'Go on.' }] });
  t.match(app.asked.messages.slice(1, 3), [{ content: 'commentary' }, { content: 'final_answer' }]);
});

t.test('streaming-response: every event of the stream matches the schema, and the last one holds the response', async (t) => {
  const input = [{ type: 'message', role: 'user', content: 'Count from 1 to 5.' }];
  const { text } = await post('/v1/responses', { model, input, stream: true });
  const frames = text.trimEnd().split('\n\n');
  t.equal(frames.pop(), 'data: [DONE]');
  const events = frames.map((frame) => {
    const [name, data] = frame.split('\n');
    const event = coreEvent.parse(JSON.parse(data?.slice('data: '.length) ?? ''));
    t.equal(name, `event: ${event.type}`);
    return event;
  });
  t.match(events.at(-1), { type: 'response.completed', response: { status: 'completed' } });
});

t.test('system-prompt: a system message in the input reaches the model', async (t) => {
  await completed({
    input: [
      { type: 'message', role: 'system', content: 'You are a pirate.' },
      { type: 'message', role: 'user', content: 'Say hello.' },
    ],
  });
  t.match(app.asked.messages[0], { role: 'system', content: 'You are a pirate.' });
});

t.test('tool-calling: a function tool of the caller is called', async (t) => {
  app.models.enqueue({ toolCalls: [{ name: 'get_weather', arguments: { location: 'San Francisco, CA' } }] });
  const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
  const response = await completed({
    input: [{ type: 'message', role: 'user', content: "What's the weather like in San Francisco?" }],
    tools: [{ type: 'function', name: 'get_weather', description: 'The weather of a place', parameters }],
  });
  t.match(response.tools, [{ name: 'get_weather', parameters }]);
  t.match(response.output[0], { type: 'function_call', name: 'get_weather', arguments: '{"location":"San Francisco, CA"}' });
});

t.test('image-input: an image as a data URL is passed to the model', async (t) => {
  const pixel =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  app.models.enqueue({ text: 'A pixel.' });
  await completed({
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is in this image?' },
          { type: 'input_image', image_url: pixel },
        ],
      },
    ],
  });
  t.match(app.asked.messages.at(-1)?.content, [{ type: 'text' }, { type: 'image_url', image_url: { url: pixel } }]);
});

t.test('multi-turn: assistant and user messages are the history', async (t) => {
  await completed({
    input: [
      { type: 'message', role: 'user', content: 'My name is Alice.' },
      { type: 'message', role: 'assistant', content: 'Hello Alice!' },
      { type: 'message', role: 'user', content: 'What is my name?' },
    ],
  });
  t.same(
    app.asked.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'user'],
  );
});

t.test('compact-response: a conversation becomes a compaction item', async (t) => {
  app.models.enqueue({ text: 'They launch on Tuesday.' });
  const { body } = await post('/v1/responses/compact', {
    model,
    prompt_cache_key: 'compact-test',
    input: [
      { type: 'message', role: 'user', content: 'We agreed to launch on Tuesday and notify support first.' },
      { type: 'message', role: 'assistant', content: 'Understood.' },
    ],
  });
  t.ok(compactResource.parse(body).output.some(({ type }) => type === 'compaction'));
});

t.test('compact-missing-model: compaction without a model is refused', async (t) => {
  const { status } = await post('/v1/responses/compact', {
    input: [{ type: 'message', role: 'user', content: 'Compact this.' }],
  });
  t.equal(status, 400);
});

t.test('websocket-response: every message on the socket is one event that matches the schema', async (t) => {
  const live = await LiveSocket.open(t, app);
  const { response } = await turn(live, { input: [{ type: 'message', role: 'user', content: 'Count from 1 to 3.' }] });
  t.equal(response.status, 'completed');
});

t.test('websocket-sequential-responses: one connection serves several responses', async (t) => {
  const live = await LiveSocket.open(t, app);
  for (const word of ['first', 'second']) {
    const { response } = await turn(live, { store: false, input: word });
    t.match(response.output, [{ content: [{ text: word }] }]);
  }
});

t.test('websocket-continuation: a response that is not stored is continued on its connection', async (t) => {
  const live = await LiveSocket.open(t, app);
  const { response } = await turn(live, { store: false, input: 'The code word is cobalt.' });
  await turn(live, { store: false, previous_response_id: response.id, input: 'What is the code word?' });
  t.match(JSON.stringify(app.asked.messages), /cobalt.*What is the code word/);
});

t.test('websocket-reconnect-store-false-recovery: after a reconnect the chain is lost, and a new one begins', async (t) => {
  const first = await LiveSocket.open(t, app);
  const { response } = await turn(first, { store: false, input: 'The code word is copper.' });
  first.ws.close();
  await first.closed;
  const second = await LiveSocket.open(t, app);
  const { error } = await refusal(second, { store: false, previous_response_id: response.id, input: 'Go on.' });
  t.equal(error.code, 'previous_response_not_found');
  t.equal((await turn(second, { store: false, input: 'recovered' })).response.status, 'completed');
});

t.test('websocket-previous-response-not-found: an unknown response cannot be continued', async (t) => {
  const live = await LiveSocket.open(t, app);
  const refused = await refusal(live, { store: false, previous_response_id: 'resp_missing', input: 'x' });
  t.match(refused, { status: 400, error: { code: 'previous_response_not_found', param: 'previous_response_id' } });
});

t.test('websocket-failed-continuation-evicts-cache: a continuation that fails evicts what it continued', async (t) => {
  const live = await LiveSocket.open(t, app);
  const { response } = await turn(live, { store: false, input: 'The code word is ember.' });
  const previous_response_id = response.id;
  const output = [{ type: 'function_call_output', call_id: 'call_missing', output: 'x' }];
  t.match(await refusal(live, { store: false, previous_response_id, input: output }), { status: 400 });
  const { error } = await refusal(live, { store: false, previous_response_id, input: 'stale' });
  t.equal(error.code, 'previous_response_not_found');
});

t.test('websocket-compact-new-chain: the output of a compaction begins a new chain on a socket', async (t) => {
  app.models.enqueue({ text: 'The code word is slate.' });
  const { body } = await post('/v1/responses/compact', {
    model,
    input: [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Remember the code word: slate.' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'OK.' }] },
    ],
  });
  const { output } = compactResource.parse(body);
  const live = await LiveSocket.open(t, app);
  const user = { type: 'message', role: 'user', content: 'Reply with exactly: compacted' };
  const { response } = await turn(live, { store: false, input: [...output, user], tools: [] });
  t.match(textOf(response as never), /compacted/);
  t.match(app.asked.messages.at(-1)?.content, /slate.*compacted/s);
});
