import t from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

const SYSTEM = { role: 'system', content: 'You are the assistant.' };

const server = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
  blind: { use: openai, baseUrl: "\${MODEL_URL}", model: small-1, input: [text] }
tools:
  clock: {}
agents:
  assistant: { model: fast, system: You are the assistant. }
  plain: { model: fast }
  blind-one: { model: blind }
  equipped: { model: fast, tools: [clock] }
  handing: { model: fast, clientTools: passthrough }
  settled: { model: fast, params: { temperature: 0.25, max_tokens: 100, stop: [END] } }
`,
);

const ask = (messages: readonly object[], fields: object = {}) => server.chat({ model: 'assistant', messages, ...fields });
const user = (content: unknown) => ({ role: 'user', content });

const call = { id: 'call_9', type: 'function', function: { name: 'weather', arguments: '{"city":"Rome"}' } };

t.test('C-050 C-053 a conversation reaches the model unchanged, after the agent’s prompt', async (t) => {
  const conversation = [user('Hi'), { role: 'assistant', content: 'Hello!' }, user('How are you?')];
  const reply = await ask(conversation);
  t.equal(answerOf(reply), 'How are you?');
  t.strictSame(server.asked.messages, [SYSTEM, ...conversation]);
  t.equal(server.asked.model, 'big-1', 'under the name that the model server has for the model');
  t.equal(server.asked.stream, false);
  await server.stream(saying('Hi'));
  t.match(server.asked, { stream: true, stream_options: { include_usage: true } });
});

t.test('C-054 C-052 a system or developer message replaces the agent’s prompt', async (t) => {
  for (const role of ['system', 'developer']) {
    await ask([{ role, content: 'You are a pirate.' }, user('Hi')]);
    t.strictSame(server.asked.messages, [{ role: 'system', content: 'You are a pirate.' }, user('Hi')]);
  }
  await ask([{ role: 'system', content: 'One.' }, { role: 'developer', content: 'Two.' }, user('Hi')]);
  t.strictSame(
    server.asked.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'One.'],
      ['system', 'Two.'],
      ['user', 'Hi'],
    ],
    'several, in their order',
  );
  await server.chat({ model: 'plain', messages: [user('Hi')] });
  t.strictSame(server.asked.messages, [user('Hi')], 'an agent without a prompt adds none');
});

t.test('C-051 text parts of any role are concatenated', async (t) => {
  const parts = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }));
  await ask([
    { role: 'system', content: parts('Be ', 'brief.') },
    user(parts('Hi')),
    { role: 'assistant', content: parts('Hello', ' there.') },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_9', content: parts('sun', 'ny') },
    user(parts('What ', 'now?')),
  ]);
  t.strictSame(server.asked.messages, [
    { role: 'system', content: 'Be brief.' },
    user('Hi'),
    { role: 'assistant', content: 'Hello there.' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', content: 'sunny', tool_call_id: 'call_9' },
    user('What now?'),
  ]);
});

t.test('C-055 images reach a model that accepts them unchanged, and a text-only model is not called', async (t) => {
  const content = [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: 'https://example.org/a.png', detail: 'low' } },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
  ];
  t.equal((await ask([user(content)])).status, 200);
  t.strictSame(server.asked.messages, [SYSTEM, user(content)]);
  const before = server.models.requests.length;
  for (const model of ['blind-one', 'blind']) {
    const reply = await server.chat({ model, messages: [user('Hi'), user(content)] });
    t.equal(reply.status, 400);
    t.match(errorOf(reply), { type: 'invalid_request_error', param: 'messages[1].content[1]', code: 'invalid_value' });
  }
  t.equal(server.models.requests.length, before);
});

t.test('C-056 C-057 tool calls and consecutive user messages are passed on in order', async (t) => {
  const conversation = [
    user('What is the weather?'),
    { role: 'assistant', content: null, tool_calls: [call, { ...call, id: 'call_10' }] },
    { role: 'tool', content: 'sunny', tool_call_id: 'call_10' },
    { role: 'tool', content: 'rainy', tool_call_id: 'call_9' },
    { role: 'assistant', content: 'It depends.' },
    user('On what?'),
    user('Tell me!'),
  ];
  t.equal((await ask(conversation)).status, 200);
  t.strictSame(server.asked.messages, [SYSTEM, ...conversation]);
});

t.test('C-058 extra fields that clients put on messages are accepted', async (t) => {
  const marked = [{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }];
  const reply = await ask([
    { role: 'user', name: 'ann', content: marked },
    {
      role: 'assistant',
      content: 'Hello!',
      refusal: null,
      reasoning_content: 'A greeting.',
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: null,
      prompt_cache_breakpoint: { mode: 'explicit' },
    },
    { role: 'assistant', content: null, refusal: 'No.' },
    user('Why?'),
  ]);
  t.equal(reply.status, 200);
  t.strictSame(server.asked.messages.slice(1), [
    { role: 'user', content: marked, name: 'ann' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'assistant', content: null, refusal: 'No.' },
    user('Why?'),
  ]);
});

t.test('C-059 tools in a request are accepted, reported as ignored, and never called', async (t) => {
  const tools = Array.from({ length: 25 }, (_, i) => ({
    type: 'function',
    function: { name: `tool_${i}`, description: 'Does something', parameters: { type: 'object', properties: {} } },
  }));
  const before = server.models.requests.length;
  server.models.enqueue({ toolCalls: [{ name: 'tool_3', arguments: {} }] }, { text: 'Done without.' });
  const reply = await ask([user('Hi')], { model: 'equipped', tools, tool_choice: 'auto', parallel_tool_calls: false });
  t.match(reply.body, { choices: [{ message: { content: 'Done without.' }, finish_reason: 'stop' }] });
  t.notMatch(reply.text, 'tool_calls');
  t.equal(reply.headers.get('x-ignored-params'), 'tools, parallel_tool_calls');
  const offered = server.models.requests[before]?.body.tools as { function: { name: string } }[] | undefined;
  t.strictSame(
    offered?.map((tool) => tool.function.name),
    ['clock'],
  );
  t.match(server.asked.messages.at(-1), { role: 'tool', content: /tool_3/ }, 'a model that calls one anyway gets an error');
  server.models.enqueue({ toolCalls: [{ name: 'tool_3', arguments: {} }] }, { text: 'Done without.' });
  const streamed = await server.stream({ model: 'equipped', messages: [user('Hi')], tools });
  t.equal(streamed.text, 'Done without.');
  t.notOk(streamed.chunks.some(({ choices }) => choices[0]?.delta.tool_calls));
});

t.test('C-060 a forced tool call is refused if the agent ignores client tools', async (t) => {
  const tools = [{ type: 'function', function: { name: 'weather' } }];
  const before = server.models.requests.length;
  for (const tool_choice of ['required', { type: 'function', function: { name: 'weather' } }]) {
    const reply = await ask([user('Hi')], { tools, tool_choice });
    t.equal(reply.status, 400);
    t.match(errorOf(reply), { type: 'invalid_request_error', param: 'tool_choice', code: 'unsupported_value' });
  }
  t.equal(server.models.requests.length, before);
  server.models.enqueue({ toolCalls: [{ id: 'call_9', name: 'weather', arguments: '{"city":"Rome"}' }] });
  const passed = await ask([user('Hi')], { model: 'handing', tools, tool_choice: 'required' });
  t.match(passed.body, {
    choices: [
      { message: { role: 'assistant', content: null, tool_calls: [{ ...call, id: /^call_/ }] }, finish_reason: 'tool_calls' },
    ],
  });
  t.match(server.asked, { tool_choice: 'required', tools: [{ function: { name: 'weather' } }] });
});

t.test('C-061 sampling parameters reach the model unless the agent sets them', async (t) => {
  const params = {
    max_completion_tokens: 50,
    temperature: 0.5,
    top_p: 0.9,
    stop: ['x', 'y'],
    seed: 7,
    reasoning_effort: 'low',
    verbosity: 'high',
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } },
  };
  const reply = await ask([user('Hi')], params);
  t.match(server.asked, params);
  t.notOk(reply.headers.has('x-ignored-params'));
  await ask([user('Hi')], { max_tokens: 40 });
  t.equal(server.asked.max_tokens, 40);
  t.notOk('max_completion_tokens' in server.asked);

  const settled = await server.chat({ model: 'settled', messages: [user('Hi')], ...params });
  t.match(server.asked, { temperature: 0.25, max_tokens: 100, stop: ['END'], top_p: 0.9, seed: 7 });
  t.notOk('max_completion_tokens' in server.asked, 'and not under another name');
  t.equal(settled.headers.get('x-ignored-params'), 'max_completion_tokens, temperature, stop');
});

t.test('C-062 other fields that identify callers are not a session key', async (t) => {
  const fields = { safety_identifier: 'ann', prompt_cache_key: 'ann' };
  await server.chat(saying('First', fields));
  await server.chat(saying('Second', fields));
  t.strictSame(server.asked.messages, [SYSTEM, user('Second')]);
  await server.chat(saying('Third', { ...fields, user: 'ann' }));
  t.strictSame(server.asked.messages, [SYSTEM, user('Third')]);
});
