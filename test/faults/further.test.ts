import t, { type Test } from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';
import { bearer } from '../support/tokens.js';

const config = ({ agent = '', model = '', rest = '' } = {}) => `${TRANSPORTS}  conversations: {}
  responses: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}"${model} }
agents:
  assistant: { model: fast${agent} }
${rest}`;

/** An agent with the tools of a plugin. @param tools JavaScript. */
const startWithTools = (t: Test, tools: string, agent = '') =>
  TestServer.start(t, config({ agent: `, tools: [own]${agent}`, rest: 'tools: { own: { use: ./own.mjs } }\n' }), {
    files: {
      'own.mjs': `
        import { definePlugin, ToolSources } from '@plugboard/kernel';
        const tools = ${tools};
        export default definePlugin({
          name: 'own', apiVersion: 1, summary: 'Tools of a test', configSchema: { type: 'object', properties: {} },
          register: (ctx) => ctx.contribute(ToolSources, { single: false, tools: async () => tools }),
        });`,
    },
  });

t.test('an unpaired surrogate does not reach a model server, so the session can continue', async (t) => {
  const server = await TestServer.start(t, config());
  server.models.respond(({ body }) =>
    JSON.stringify(body.messages).includes('\\ud83d here') ? { status: 400 } : { text: 'Yes' },
  );
  const reply = await server.chat(saying('cut \ud83d here', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  const literal = 'a literal \\ud83d, \\\\ud83d and \u{1f600}';
  t.equal(answerOf(await server.chat(saying(literal, { session_id: 's' }))), 'Yes');
  t.match(server.asked.messages, [{ content: 'cut \ufffd here' }, {}, { content: literal }]);
});

t.test('an error message contains no unpaired surrogate', async (t) => {
  const server = await TestServer.start(t, config());
  for (const length of [10, 60]) {
    for (const role of [`${'x'.repeat(length)}\u{1f600}${'y'.repeat(30)}`, `${'x'.repeat(length)}\ud83d`]) {
      const reply = await server.chat({ model: 'assistant', messages: [{ role, content: 'Hi' }] });
      t.equal(reply.status, 400);
      t.ok(String(errorOf(reply).message).isWellFormed(), String(errorOf(reply).message));
    }
  }
});

t.test('an interrupting request is accepted even if no request may wait', async (t) => {
  const server = await TestServer.start(t, config({ rest: 'limits: { queuedPerSession: 0 }\n' }));
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Half', gate.promise] }, { text: 'Whole' });
  const first = await server.open(saying('One', { session_id: 's' }));
  await first.until('Half');
  const reply = await server.chat(saying('Two', { session_id: 's' }), { 'x-session-busy': 'interrupt' });
  gate.resolve();
  t.equal(reply.status, 200, reply.text);
  t.equal(answerOf(reply), 'Whole');
});

t.test('an unknown default agent is reported, whatever its name', async (t) => {
  for (const name of ['constructor', 'toString', '__proto__', 'missing']) {
    const message = new RegExp(`unknown agent "${name}"`);
    await t.rejects(TestServer.start(t, config({ rest: `defaultAgent: ${name}\n` })), { message }, name);
  }
});

t.test('the model is asked for a summary in plain words', async (t) => {
  const server = await TestServer.start(t, config({ model: ', contextWindow: 3000', agent: ', history: summarize' }));
  for (const n of [1, 2, 3]) await server.chat(saying(`${n} ${'word '.repeat(700)}`, { session_id: 's' }));
  const asked = server.models.requests.map(({ body }) => String(body.messages[0]?.content));
  const instructions = asked.filter((text) => text.startsWith('You keep the memory of a conversation'));
  t.not(instructions.length, 0);
  for (const text of instructions) t.match(text, /^Keep what is needed to continue:/m);
});

t.test('two consecutive calls with one id are refused in items', async (t) => {
  const server = await TestServer.start(t, config());
  const call = { type: 'function_call', call_id: 'same', name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'same', output: 'x' };
  for (const items of [
    [call, call, output],
    [call, call, output, output],
  ]) {
    const body = { agent: 'assistant', items: [{ role: 'user', content: 'Hi' }, ...items] };
    const reply = await server.request('POST', '/v1/conversations', {}, body);
    t.equal(reply.status, 400, reply.text);
    t.match(errorOf(reply), { param: 'items[2].call_id', code: 'invalid_value', message: /same/ });
  }
  const again = { agent: 'assistant', items: [{ role: 'user', content: 'Hi' }, call, output, call, output] };
  t.equal((await server.request('POST', '/v1/conversations', {}, again)).status, 200, 'in two steps they are different calls');
});

t.test('a session that outgrew a fall-back connection is cut to fit it', async (t) => {
  const server = await TestServer.start(
    t,
    `${TRANSPORTS}
models:
  large: { use: openai, baseUrl: "\${MODEL_URL}", model: large-1, contextWindow: 100000 }
  small: { use: openai, baseUrl: "\${MODEL_URL}", model: small-1, contextWindow: 3000 }
agents:
  assistant: { model: [large, small], system: Be brief. }
`,
  );
  const say = (text: string) => server.chat(saying(text, { session_id: 's' }));
  for (const n of [1, 2, 3, 4, 5]) await say(`${n} ${'word '.repeat(500)}`);
  t.equal(server.asked.messages.length, 10, 'the first connection is sent everything');
  server.models.respond(({ body }) => {
    const isTooLong = JSON.stringify(body.messages).length > 3000 * 4;
    return body.model === 'large-1' ? { status: 401 } : isTooLong ? { status: 400 } : { text: 'Here I am.' };
  });
  const reply = await say('And now?');
  t.equal(reply.status, 200, reply.text);
  t.equal(answerOf(reply), 'Here I am.');
  t.match(server.asked.messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: /^5 / },
    { role: 'assistant' },
    { role: 'user', content: 'And now?' },
  ]);
});

t.test('an agent with a `max_tokens` that is not a number keeps the limit of its history', async (t) => {
  const agent = ', params: { max_tokens: lots }';
  const server = await TestServer.start(t, config({ model: ', contextWindow: 2000', agent }));
  for (const n of [1, 2, 3, 4]) await server.chat(saying(`${n} ${'word '.repeat(700)}`, { session_id: 's' }));
  t.ok(JSON.stringify(server.asked.messages).length < 2000 * 4);
});

t.test('a list of allowed tools applies after the first step, without forcing a call', async (t) => {
  const rest = 'tools: { clock: {} }\n';
  const server = await TestServer.start(t, config({ agent: ', tools: [clock], clientTools: passthrough', rest }));
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

t.test('a request to /v1/responses with an invalid user does not use up its idempotency key', async (t) => {
  const server = await TestServer.start(t, config());
  const send = (user: string) =>
    server.request('POST', '/v1/responses', { 'idempotency-key': 'k' }, { model: 'assistant', input: 'Hi', user });
  for (const _ of [1, 2]) {
    const reply = await send('a\u0000b');
    t.equal(reply.status, 400, reply.text);
    t.match(errorOf(reply), { param: 'user' });
  }
  t.equal((await send('ada')).status, 200);
});

t.test('a tool with a draft-07 schema is offered, and its arguments are validated', async (t) => {
  const server = await startWithTools(
    t,
    `[{
      name: 'go', description: '', effect: 'read', run: async () => 'arrived',
      inputSchema: {
        $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', additionalProperties: false,
        properties: { at: { type: 'array', items: [{ type: 'number' }, { type: 'number' }], additionalItems: false } },
      },
    }]`,
  );
  for (const [at, result] of [
    [[1, 2], 'arrived'],
    [[1, 'x'], /"at\[1\]" must be a number/],
    [[1, 2, 3], /must NOT have more than 2 items/],
  ] as const) {
    server.models.enqueue({ toolCalls: [{ name: 'own__go', arguments: { at } }] }, { text: 'Done' });
    await server.chat(saying('Go'));
    t.match(server.asked.messages.at(-1), { role: 'tool', content: result });
  }
});

t.test('results and errors of a tool are valid Unicode and within the result limit', async (t) => {
  const server = await startWithTools(
    t,
    `[
      { name: 'half', description: '', effect: 'read', inputSchema: { type: 'object' }, run: async () => 'cut \\ud83d' },
      { name: 'fail', description: '', effect: 'read', inputSchema: { type: 'object' }, run: async () => { throw new Error('x'.repeat(1e6)); } },
    ]`,
  );
  server.models.enqueue(
    { toolCalls: ['half', 'fail'].map((name) => ({ name: `own__${name}`, arguments: {} })) },
    { text: 'Done' },
  );
  const reply = await server.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'Hi' });
  t.match(reply.body, { output: [{ type: 'mcp_call', output: 'cut \ufffd' }, {}, {}] });
  const [half, fail] = server.asked.messages.slice(-2);
  t.match(half, { content: 'cut \ufffd' });
  t.match(fail?.content, /^The tool failed: x+\n… \[truncated: 1000017 bytes in total\]$/);
  t.ok(String(fail?.content).length <= 64 * 1024);
});

/** Two callers of one name, and one whose provider gives no id. */
const NAMESAKES = `
  import { AuthProviders, definePlugin } from '@plugboard/kernel';
  const one = { project: 'default', token: 'ada', scopes: ['chat'] };
  const principals = { first: { ...one, tokenId: 'id-1' }, second: { ...one, tokenId: 'id-2' }, nameless: one };
  export default definePlugin({
    name: 'namesakes', apiVersion: 1, summary: 'Knows callers', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(AuthProviders, { authenticate: ({ bearer }) => ({ principal: principals[bearer] }) }),
  });
`;

t.test('S-44 two callers with the same name do not join turns or share idempotency keys', async (t) => {
  const rest = 'auth: { namesakes: { use: ./namesakes.mjs } }\n';
  const server = await TestServer.start(t, config({ rest }), { files: { 'namesakes.mjs': NAMESAKES } });
  const gate = Promise.withResolvers<void>();
  server.models.respond(() => ({ text: [gate.promise, 'Yes'] }));
  const body = saying('Hi', { session_id: 's' });
  const replies = ['first', 'first', 'second', 'nameless', 'nameless'].map((token) => server.chat(body, bearer(token)));
  await server.models.received(1);
  gate.resolve();
  for (const reply of await Promise.all(replies)) t.equal(answerOf(reply), 'Yes');
  t.equal(server.models.requests.length, 4, 'only the same credential joins');

  const key = { 'idempotency-key': 'k' };
  for (const [token, status, replayed] of [
    ['first', 200, null],
    ['first', 200, 'true'],
    ['second', 422, null],
  ] as const) {
    const reply = await server.chat(saying('Once'), { ...key, ...bearer(token) });
    t.equal(reply.status, status, reply.text);
    t.equal(reply.headers.get('idempotent-replayed'), replayed);
  }
});
