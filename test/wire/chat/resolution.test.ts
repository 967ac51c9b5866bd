import t from 'tap';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { LiveSocket } from '../../support/live-socket.js';
import { errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer, TOKENS, tokens } from '../../support/tokens.js';

const AGENTS = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, system: You are the assistant., tools: [clock] }
  "team/agent one ü": { model: fast, system: You are number one. }
  billing: { model: fast, system: You do the billing., project: acme }
  sales: { model: fast, system: You sell., project: acme }
  stock: { model: fast, system: You count., project: beta }
projects:
  acme: { defaultAgent: billing }
  beta: {}
`;

const open = await TestServer.start(t, `${LIVE_TRANSPORTS}  messages: {}\n${AGENTS}defaultAgent: assistant\n`);
const closed = await TestServer.start(t, `${TRANSPORTS}${AGENTS}${TOKENS}`, { files: tokens });

/** What a caller with this token is answered under a name; without one, in the open scope. */
function ask(model: string, token?: string, fields: object = {}) {
  const server = token === undefined ? open : closed;
  return server.chat(saying('Hi', { model, ...fields }), bearer(token));
}

const promptOf = ({ asked }: TestServer) => asked.messages.find(({ role }) => role === 'system')?.content;

t.test('C-065 the name of an agent selects it in every scope that may use it', async (t) => {
  t.match((await ask('assistant')).body, { model: 'assistant' });
  t.equal(promptOf(open), 'You are the assistant.');
  t.match(open.asked.tools, [{ function: { name: 'clock' } }]);
  for (const [model, token, prompt] of [
    ['billing', undefined, 'You do the billing.'],
    ['billing', 'token-of-acme', 'You do the billing.'],
    ['sales', 'token-of-acme', 'You sell.'],
    ['stock', 'token-of-beta', 'You count.'],
    ['stock', 'token-of-default', 'You count.'],
  ] as const) {
    t.equal((await ask(model, token)).status, 200);
    t.equal(promptOf(token === undefined ? open : closed), prompt);
  }
});

t.test('C-066 the name of a raw model makes one call, in the open and the default scope', async (t) => {
  for (const [server, token] of [
    [open, undefined],
    [closed, 'token-of-default'],
  ] as const) {
    const before = server.models.requests.length;
    server.models.enqueue({ toolCalls: [{ id: 'call_1', name: 'f', arguments: '{}' }] });
    const reply = await ask('fast', token, { tools: [{ type: 'function', function: { name: 'f' } }] });
    t.match(reply.body, {
      model: 'fast',
      choices: [
        { message: { tool_calls: [{ id: /^call_[0-9A-Za-z]{24}$/, function: { name: 'f' } }] }, finish_reason: 'tool_calls' },
      ],
    });
    t.equal(server.models.requests.length, before + 1);
    t.match(server.asked, { model: 'big-1', messages: [{ role: 'user', content: 'Hi' }], tools: [{ function: { name: 'f' } }] });
    t.equal(server.asked.messages.length, 1);
    await ask('fast', token);
    t.notOk('tools' in server.asked);
  }
});

t.test('C-067 with a project token the name of a raw model is not special', async (t) => {
  const reply = await ask('fast', 'token-of-acme');
  t.match(reply.body, { model: 'fast' });
  t.equal(promptOf(closed), 'You do the billing.', 'the default agent answers');
  const before = closed.models.requests.length;
  for (const token of ['token-of-beta', 'token-of-one-agent']) {
    const refused = await ask('fast', token);
    t.equal(refused.status, 400);
    t.equal(errorOf(refused).type, 'svc_error');
    t.strictSame(errorOf(refused), errorOf(await ask('no-such-name', token)), 'as an unknown name is');
  }
  t.equal(closed.models.requests.length, before);
});

t.test('C-068 the default agent answers to an unknown name', async (t) => {
  const reply = await ask('gpt-5');
  t.match(reply.body, { model: 'gpt-5' });
  t.equal(promptOf(open), 'You are the assistant.');
  const streamed = await open.stream(saying('Hi', { model: 'gpt-5' }));
  t.ok(streamed.chunks.every(({ model }) => model === 'gpt-5'));
});

t.test('C-068 every answer names the agent, also where another name was asked for', async (t) => {
  const messages = [{ role: 'user', content: 'Hi' }];
  for (const [model, agent] of [
    ['assistant', 'assistant'],
    ['gpt-5', 'assistant'],
    ['fast', 'fast'],
    ['team/agent one ü', 'team%2Fagent%20one%20%C3%BC'],
  ] as const) {
    for (const stream of [false, true]) {
      for (const [path, body] of [
        ['/v1/chat/completions', { messages }],
        ['/v1/messages', { messages, max_tokens: 9 }],
        ['/v1/responses', { input: 'Hi' }],
      ] as const) {
        const reply = await fetch(open.url + path, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ model, stream, ...body }),
        });
        t.equal(reply.headers.get('x-agent'), agent, `${path} ${model} ${stream}`);
        const text = await reply.text();
        if (path === '/v1/responses') t.match(text, `"model":"${model}","agent":"${decodeURIComponent(agent)}"`);
      }
    }
  }
  const socket = await LiveSocket.open(t, open);
  socket.create({ model: 'gpt-5', input: 'Hi' });
  t.match((await socket.turn()).at(-1)?.response, { model: 'gpt-5', agent: 'assistant' });
});

t.test('C-069 a name that does not resolve gets a 400, streamed or not', async (t) => {
  for (const token of ['token-of-default', 'token-of-beta']) {
    for (const stream of [false, true]) {
      const reply = await ask('no-such-name', token, { stream });
      t.equal(reply.status, 400);
      t.match(reply.headers.get('content-type'), /^application\/json/);
      t.strictSame(reply.body, { error: { message: errorOf(reply).message, type: 'svc_error' } });
      t.match(errorOf(reply).message, /\S/);
    }
  }
});

t.test('C-070 an agent out of scope gets a 403, without a run or a session', async (t) => {
  const before = closed.models.requests.length;
  for (const [model, token] of [
    ['assistant', 'token-of-acme'],
    ['stock', 'token-of-acme'],
    ['billing', 'token-of-beta'],
    ['billing', 'token-of-one-agent'],
  ] as const) {
    for (const stream of [false, true]) {
      const reply = await ask(model, token, { stream, session_id: 'forbidden' });
      t.equal(reply.status, 403);
      t.strictSame(reply.body, { error: { message: errorOf(reply).message, type: 'svc_error' } });
      t.notMatch(reply.text, model, 'without a word about the agent');
    }
  }
  t.equal(closed.models.requests.length, before);
  await ask('stock', 'token-of-beta', { session_id: 'forbidden' });
  t.equal(closed.asked.messages.length, 2, 'the prompt and the first message');
});

t.test('C-127 C-128 one key of one agent in two projects names two sessions', async (t) => {
  const key = { session_id: 'for-two' };
  await ask('billing', 'token-of-acme', key);
  await ask('billing', 'token-of-default', key);
  t.equal(closed.asked.messages.length, 2, 'the prompt and the first message');
  await ask('billing', 'token-of-acme', key);
  t.equal(closed.asked.messages.length, 4);
});

t.test('C-071 the answer repeats the requested name', async (t) => {
  for (const model of ['team/agent one ü', 'Größe/größer', ' spaces ', '😀', 'a"b\\c\u2028', '__proto__', 'constructor']) {
    t.equal((await ask(model)).body && ((await ask(model)).body as { model: string }).model, model);
    const { chunks } = await open.stream(saying('Hi', { model }));
    t.ok(chunks.length > 0 && chunks.every((chunk) => chunk.model === model));
  }
  await ask('team/agent one ü');
  t.equal(promptOf(open), 'You are number one.');
});

t.test('C-155 C-156 the list of models has entries with four fields that distinguish agents from raw models', async (t) => {
  const entry = (id: string, owner: string) => ({ id, object: 'model', created: 0, owned_by: owner });
  const agents = ['assistant', 'team/agent one ü', 'billing', 'sales', 'stock'].map((id) => entry(id, 'svc:agent'));
  t.strictSame((await open.get('/v1/models')).body, { object: 'list', data: [...agents, entry('fast', 'svc:model')] });
});

const reachable = {
  'token-of-default': ['assistant', 'team/agent one ü', 'billing', 'sales', 'stock', 'fast'],
  'token-of-acme': ['billing', 'sales'],
  'token-of-beta': ['stock'],
  'token-of-one-agent': ['assistant'],
} as const;

t.test('C-157 C-159 a token lists the models it can use, and each of them answers', async (t) => {
  for (const [token, names] of Object.entries(reachable)) {
    const asked = closed.models.requests.length;
    const list = (await closed.get('/v1/models', bearer(token))).body as { data: { id: string }[] };
    t.equal(closed.models.requests.length, asked, 'no model server is asked for the list');
    t.strictSame(
      list.data.map(({ id }) => id),
      names,
    );
    for (const { id } of list.data) t.equal((await ask(id, token)).status, 200, `${id} with ${token}`);
  }
});

t.test('C-158 one model can be retrieved, slashes encoded or not, and a model out of scope is not found', async (t) => {
  for (const path of ['team%2Fagent%20one%20%C3%BC', 'team/agent%20one%20%C3%BC']) {
    const reply = await open.get(`/v1/models/${path}`);
    t.strictSame(reply.body, { id: 'team/agent one ü', object: 'model', created: 0, owned_by: 'svc:agent' });
  }
  t.match((await open.get('/v1/models/fast')).body, { owned_by: 'svc:model' });
  for (const [name, token] of [
    ['nobody', 'token-of-default'],
    ['assistant', 'token-of-acme'],
    ['fast', 'token-of-acme'],
  ] as const) {
    const reply = await closed.get(`/v1/models/${name}`, bearer(token));
    t.equal(reply.status, 404);
    t.match(errorOf(reply), { message: `The model '${name}' does not exist`, code: 'model_not_found' });
  }
});

t.test('C-160 the health routes report liveness and readiness without a token', async (t) => {
  const healthy = { status: 'ok', service: 'plugboard', ready: true };
  for (const path of ['/health', '/healthz']) t.strictSame((await closed.get(path)).body, healthy, path);
  const without = {
    'a model': TRANSPORTS,
    'an agent': `${TRANSPORTS}models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 } }\n`,
  };
  for (const [what, yaml] of Object.entries(without)) {
    const server = await TestServer.start(t, yaml);
    for (const path of ['/health', '/healthz']) {
      const reply = await server.get(path);
      t.equal(reply.status, 200);
      t.strictSame(reply.body, { ...healthy, ready: false }, `not ready without ${what}`);
    }
    t.equal((await server.get('/readyz')).status, 503);
  }
});

t.test('C-112 C-141 an invalid token hides all other errors, streamed or not', async (t) => {
  const { models } = closed;
  const before = models.requests.length;
  for (const credential of [undefined, 'Bearer wrong', 'Basic eDp5', 'Bearer', 'token-of-acme']) {
    const headers: Readonly<Record<string, string>> = credential === undefined ? {} : { authorization: credential };
    for (const body of [saying('Hi'), saying('Hi', { stream: true }), { model: 'nobody' }, '{']) {
      const reply = await closed.chat(body, headers);
      t.equal(reply.status, 401);
      t.match(reply.headers.get('content-type'), /^application\/json/);
      t.match(errorOf(reply), { message: /API token/, type: 'invalid_request_error', code: 'invalid_api_key' });
    }
    for (const path of ['/v1/models', '/v1/nowhere', '/v1/chat/completions']) {
      t.equal((await closed.get(path, headers)).status, 401, `not even whether there is a ${path}`);
    }
  }
  t.equal(models.requests.length, before);
});
