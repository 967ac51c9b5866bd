import t, { type Test } from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';
import { bearer, TOKENS, tokens } from '../support/tokens.js';
import { toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

const PASSING = `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools: { clock: {} }
agents:
  assistant: { model: fast, tools: [clock], clientTools: passthrough }
`;

const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };

interface Call {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface Sent {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
}

/** The calls that the model was sent back in its last request. */
const sentCalls = (server: TestServer) => (server.asked.messages as readonly Sent[]).flatMap(({ tool_calls = [] }) => tool_calls);
const sentResults = (server: TestServer) => (server.asked.messages as readonly Sent[]).filter(({ role }) => role === 'tool');

/**
 * Strict model servers accept every call that was sent back, and ids are paired: the
 * server's own go back to it.
 */
function checkCalls(t: Test, server: TestServer): void {
  const calls = sentCalls(server);
  for (const { function: called } of calls) {
    t.match(called.name, /^[a-zA-Z0-9_-]{1,64}$/);
    t.type(JSON.parse(called.arguments), 'object');
  }
  t.strictSame(
    sentResults(server).map(({ tool_call_id }) => tool_call_id),
    calls.map(({ id }) => id),
  );
}

for (const broken of ['{"timeZone": "UTC', 'UTC', '[1]', '', 'null']) {
  t.test(`a call of the agent's own tool with the arguments ${JSON.stringify(broken)} is sent back valid`, async (t) => {
    const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);
    server.models.enqueue({ toolCalls: [{ id: 'call_1', name: 'clock', arguments: broken }] }, { text: 'Sorry.' });
    t.equal(answerOf(await server.chat(saying('Time?', { session_id: 's' }))), 'Sorry.');
    checkCalls(t, server);
    if (broken !== '' && broken !== 'null') t.match(sentResults(server)[0]?.content, /JSON/);
    await server.chat(saying('Again', { session_id: 's' }));
    checkCalls(t, server);
  });
}

t.test('a call with an invalid tool name is sent back with a valid one and an error result', async (t) => {
  const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);
  for (const name of ['clock<|channel|>json', 'a b', 'x'.repeat(80)]) {
    server.models.enqueue({ toolCalls: [{ id: 'call_1', name, arguments: {} }] }, { text: 'Sorry.' });
    t.equal(answerOf(await server.chat(saying('Time?', { session_id: 's' }))), 'Sorry.');
    checkCalls(t, server);
    t.match(sentResults(server).at(-1)?.content, /There is no tool/);
  }
});

t.test("a malformed call of a caller's tool leaves the session usable", async (t) => {
  const server = await TestServer.start(t, PASSING);
  server.models.enqueue({ toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":' }] });
  const first = await server.chat(saying('Rain?', { session_id: 's', tools: [weather] }));
  const [call] = (first.body as { choices: [{ message: { tool_calls: Call[] } }] }).choices[0].message.tool_calls;
  t.equal(call?.function.arguments, '{"city":', 'the caller sees what the model said');
  const results = [{ role: 'tool', tool_call_id: call?.id, content: 'which city?' }];
  const reply = await server.chat({ model: 'assistant', messages: results, session_id: 's', tools: [weather] });
  t.equal(reply.status, 200, reply.text);
  checkCalls(t, server);
  t.match(sentResults(server)[0]?.content, /JSON.*which city\?/s, 'the model gets the mistake');
});

t.test('malformed calls in a caller’s messages are corrected before they reach the model', async (t) => {
  const server = await TestServer.start(t, PASSING);
  const messages = [
    { role: 'user', content: 'Rain?' },
    { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'bad name', arguments: 'Rome' } }] },
    { role: 'tool', tool_call_id: 'c', content: 'no' },
    { role: 'user', content: 'And?' },
  ];
  t.equal((await server.chat({ model: 'assistant', messages })).status, 200);
  checkCalls(t, server);
});

t.test('S-43 ids of tool calls are unique and random, whatever ids the model sends', async (t) => {
  const server = await TestServer.start(t, PASSING);
  const ids = new Set<string>();
  for (const n of [1, 2, 3]) {
    server.models.enqueue({ toolCalls: [{ id: 'call_0', name: 'weather', arguments: {} }] });
    const reply = await server.chat(saying(`${n}?`, { tools: [weather] }));
    const [call] = (reply.body as { choices: [{ message: { tool_calls: Call[] } }] }).choices[0].message.tool_calls;
    t.match(call?.id, /^call_[0-9A-Za-z]{24}$/);
    ids.add(call?.id ?? '');
  }
  t.equal(ids.size, 3);
});

t.test('S-43 pending results belong to one caller and are added once per request', async (t) => {
  const yaml = `${PASSING}  second: { model: fast, tools: [clock], clientTools: passthrough }\n${TOKENS}`;
  const server = await TestServer.start(t, yaml, { files: tokens });
  const ask = { model: 'assistant', messages: [{ role: 'user', content: 'Time and rain?' }], tools: [weather] };
  server.models.enqueue({
    toolCalls: [
      { id: 'call_0', name: 'clock', arguments: { timeZone: 'UTC' } },
      { id: 'call_1', name: 'weather', arguments: {} },
    ],
  });
  const first = await server.chat(ask, bearer('token-of-default'));
  const { message } = (first.body as { choices: [{ message: { tool_calls: Call[] } }] }).choices[0];
  const followUp = {
    ...ask,
    messages: [
      ...ask.messages,
      { content: null, ...message },
      { role: 'tool', tool_call_id: message.tool_calls[0]?.id, content: 'Rain' },
    ],
  };
  await server.chat(followUp, bearer('token-of-default'));
  t.equal(sentCalls(server).length, 2, 'the owner gets the result of the clock back');
  checkCalls(t, server);
  const { tools: _, ...withoutTools } = followUp;
  await server.chat(withoutTools, bearer('token-of-default'));
  t.equal(sentCalls(server).length, 2, 'also in a follow-up without tools');
  await server.chat(followUp, bearer('other-of-default'));
  t.equal(sentCalls(server).length, 1, 'another token of the same project does not');
});

t.test("two calls with one id in a caller's messages are refused", async (t) => {
  const server = await TestServer.start(t, PASSING);
  const call = { id: 'same', type: 'function', function: { name: 'weather', arguments: '{}' } };
  const messages = [
    { role: 'user', content: 'Rain?' },
    { role: 'assistant', tool_calls: [call, call] },
    { role: 'tool', tool_call_id: 'same', content: 'yes' },
    { role: 'tool', tool_call_id: 'same', content: 'no' },
  ];
  for (const fields of [{}, { session_id: 's' }]) {
    const reply = await server.chat({ model: 'assistant', messages, ...fields });
    t.equal(reply.status, 400, reply.text);
    t.match(errorOf(reply), { type: 'invalid_request_error', param: 'messages[1].tool_calls[1].id', message: /same/ });
  }
  t.equal(server.models.requests.length, 0);
});

t.test('a list of allowed tools applies after the first step, without forcing a call', async (t) => {
  const server = await TestServer.start(t, PASSING);
  const tools = ['a', 'b'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }));
  const allowed = (mode: string) => ({
    type: 'allowed_tools',
    allowed_tools: { mode, tools: [{ type: 'function', function: { name: 'a' } }] },
  });
  for (const [choice, later] of [
    [allowed('auto'), allowed('auto')],
    [allowed('required'), allowed('auto')],
    ['none', 'none'],
    ['required', undefined],
    [{ type: 'function', function: { name: 'a' } }, undefined],
  ] as const) {
    server.models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: 'Done' });
    t.equal(answerOf(await server.chat(saying('Hi', { tools, tool_choice: choice }))), 'Done');
    t.strictSame(server.models.requests.at(-2)?.body.tool_choice, choice);
    t.strictSame(server.asked.tool_choice, later);
  }
});

t.test("a tool of the agent whose schema is too large for the model server is not its caller's mistake", async (t) => {
  const files = {
    'wide.mjs': `
      import { definePlugin, ToolSources } from '@plugboard/kernel';
      const properties = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => ['p' + n, { $ref: '#/$defs/d' }]));
      const inputSchema = { type: 'object', $defs: { d: { description: 'x'.repeat(1e5) } }, properties };
      const tool = { name: 'wide', description: 'Wide.', inputSchema, effect: 'read', run: async () => 'ok' };
      export default definePlugin({
        name: 'wide', apiVersion: 1, summary: 'Has a wide tool', configSchema: { type: 'object', properties: {} },
        register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [tool] }),
      });`,
  };
  const yaml = PASSING.replace('use: openai', 'use: openai, provider: gemini')
    .replace('clock: {}', 'wide: { use: ./wide.mjs }')
    .replace('[clock]', '[wide]');
  const server = await TestServer.start(t, yaml, { files });
  const reply = await server.chat(saying('Hi', { tools: [weather] }));
  const message = /^A tool of the agent cannot be offered to the model\. The schema of the tool 'wide' is too large/;
  t.match([reply.status, reply.body], [502, { error: { type: 'svc_error', message } }]);
  t.match(
    server.started.logs.filter(({ level }) => level === 'error'),
    [{ msg: message, agent: 'assistant' }],
  );
});
