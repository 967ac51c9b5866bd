import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { RawClient, replyOf } from '../../../plugins/transport-http/test/support/raw-client.js';
import { rawChat, rawExchange, wholeReply } from '../../support/raw-exchange.js';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';

const CHAT = '/v1/chat/completions';

const AGENTS = `${TRANSPORTS}  conversations: {}
sessions: { use: memory }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast, system: You are the assistant. }
  billing: { model: fast, system: You do the billing., project: acme }
projects: { acme: { defaultAgent: billing } }
`;

const DEFAULT = 'token-of-default-0123456789';
const ACME = 'token-of-acme-0123456789';
const READER = 'token-of-reader-0123456789';

const TOKENS = `
auth:
  bearer:
    tokens:
      - { name: ops, project: default, token: ${DEFAULT} }
      - { name: ci, project: acme, token: ${ACME} }
      - { name: reader, project: acme, token: ${READER}, scopes: ["models:read"] }
`;

const open = await TestServer.start(t, AGENTS);
const closed = await TestServer.start(t, AGENTS + TOKENS);

/** One request for each route that asks for a credential, and some that do not exist. */
const ROUTES = [
  ['GET', '/v1/models'],
  ['GET', '/v1/models/billing'],
  ['POST', CHAT],
  ['GET', '/v1/conversations'],
  ['POST', '/v1/conversations'],
  ['DELETE', '/v1/conversations/conv_1'],
  ['GET', '/v1/nowhere'],
  ['PUT', CHAT],
  ['OPTIONS', CHAT],
] as const;

function ask(server: TestServer, method: string, path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
  const body = path.startsWith(CHAT) ? JSON.stringify(saying('Hi', { model: 'billing' })) : '{}';
  const type = { 'content-type': 'application/json' };
  return fetch(server.url + path, { method, headers: { ...type, ...headers }, ...(method === 'POST' && { body }) });
}

t.test('C-140 an open server answers with any credential and without one', async (t) => {
  for (const authorization of [undefined, 'Bearer sk-test', 'Bearer none', 'Bearer', 'Basic eDp5', `Bearer ${ACME}`]) {
    const headers: Readonly<Record<string, string>> = authorization === undefined ? {} : { authorization };
    t.equal((await open.chat(saying('Hi'), headers)).status, 200, String(authorization));
    t.equal((await open.get('/v1/models', headers)).status, 200);
  }
});

t.test('C-142 the scheme is case-insensitive, and the token is checked before the body', async (t) => {
  for (const authorization of [`bearer ${ACME}`, `BEARER   ${ACME}  `]) {
    t.equal((await closed.get('/v1/models', { authorization })).status, 200, authorization);
  }
  for (const body of ['{', 'x'.repeat(100_000), saying('Hi', { n: 2 }), {}]) t.equal((await closed.chat(body)).status, 401);
});

t.test('C-143 probes need no token and reveal no agent or model', async (t) => {
  for (const path of ['/health', '/healthz', '/readyz']) {
    const { status, text } = await closed.get(path);
    t.equal(status, 200);
    t.notMatch(text, /assistant|billing|fast|big-1|acme/);
  }
});

t.test(
  'C-144 C-145 a project token reaches its agents only; the default project and an open server reach all agents and models',
  async (t) => {
    for (const [server, token, names] of [
      [closed, ACME, ['billing']],
      [closed, DEFAULT, ['assistant', 'billing', 'fast']],
      [open, undefined, ['assistant', 'billing', 'fast']],
    ] as const) {
      const { data } = (await server.get('/v1/models', bearer(token))).body as { data: { id: string }[] };
      t.strictSame(
        data.map(({ id }) => id),
        names,
      );
      for (const model of names) t.equal((await server.chat(saying('Hi', { model }), bearer(token))).status, 200, model);
    }
    t.equal((await closed.chat(saying('Hi'), bearer(ACME))).status, 403);
    t.equal(closed.models.requests.length > 0, true);
    await closed.chat(saying('Hi', { model: 'fast' }), bearer(ACME));
    t.match(closed.asked.messages[0], { content: 'You do the billing.' }, 'the name of a model does not exist');
  },
);

/** Where other servers look for a token, or looked. */
const NO_CREDENTIALS: readonly Readonly<Record<string, string>>[] = [
  { 'x-api-key': ACME },
  { 'api-key': ACME },
  { 'x-auth-token': ACME },
  { 'proxy-authorization': `Bearer ${ACME}` },
  { cookie: `token=${ACME}; authorization=Bearer ${ACME}` },
  { 'sec-websocket-protocol': `realtime, openai-insecure-api-key.${ACME}` },
  { authorization: ACME },
  { authorization: `Basic ${btoa(`api:${ACME}`)}` },
  { authorization: `Token ${ACME}` },
];

t.test('S-02 only Authorization: Bearer is a credential, on every route', async (t) => {
  const asked = closed.models.requests.length;
  for (const [method, path] of ROUTES) {
    for (const headers of NO_CREDENTIALS) {
      t.equal((await ask(closed, method, path, headers)).status, 401, `${method} ${path} ${Object.keys(headers)}`);
    }
    for (const query of [`api_key=${ACME}`, `access_token=${ACME}`, `token=${ACME}&authorization=Bearer%20${ACME}`]) {
      t.equal((await ask(closed, method, `${path}?${query}`, {})).status, 401, `${method} ${path} ${query.slice(0, 12)}`);
    }
  }
  t.equal(closed.models.requests.length, asked);
});

t.test('S-02 a second credential does not change the result, on every route', async (t) => {
  for (const [method, path] of ROUTES) {
    for (const [own, other] of [
      [READER, DEFAULT],
      [ACME, 'wrong'],
    ] as const) {
      const alone = await ask(closed, method, path, bearer(own));
      const both = await ask(closed, method, `${path}?api_key=${other}`, {
        ...bearer(own),
        'x-api-key': other,
        cookie: `token=${other}`,
      });
      t.equal(both.status, alone.status, `${method} ${path}`);
    }
  }
});

t.test('S-05 every invalid Authorization header gets the same 401', async () => {
  const printable = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 600,
  });
  const injected = fc.constantFrom(
    "' OR '1'='1",
    '"; DROP TABLE tokens; --',
    '../../etc/passwd',
    '$(id)',
    '{"$gt":""}',
    '*',
    `${ACME} `.repeat(2),
  );
  const value = fc.oneof(
    printable,
    injected,
    fc.constantFrom('svcp_', 'svca_', 'eyJ.eyJ.x').chain((start) => printable.map((end) => start + end)),
  );
  const expected = errorOf(await closed.get('/v1/models'));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('Bearer ', 'bearer', 'Basic ', ''), value, async (scheme, text) => {
      const reply = await closed.get('/v1/models', { authorization: scheme + text });
      return reply.status === 401 && JSON.stringify(errorOf(reply)) === JSON.stringify(expected);
    }),
    { numRuns: 300 },
  );
});

t.test('C-146 no token appears in the log or in a response', async (t) => {
  const canary = 'canary-token-0123456789';
  const server = await TestServer.start(
    t,
    `${AGENTS}auth: { bearer: { tokens: [{ name: ops, project: acme, token: ${canary} }] } }\n`,
  );
  const answers: string[] = [];
  for (const token of [canary, `${canary}x`, ` ${canary} `]) {
    for (const [method, path] of ROUTES) {
      const reply = await ask(server, method, path, { authorization: `Bearer ${token}`, 'x-api-key': canary });
      answers.push(await reply.text(), JSON.stringify([...reply.headers]));
    }
  }
  t.match(answers.join(), /chat\.completion/);
  await server.stop();
  t.notMatch(answers.join(), canary);
  t.notMatch(JSON.stringify(server.started.logs), canary);
  t.notMatch(JSON.stringify(server.models.requests), canary);
});

t.test('S-06 URLs and keys in a request do not change the model call', async (t) => {
  let calls = 0;
  const listener = createServer((_, response) => {
    calls++;
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => listener.close());
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/v1`;
  const fields = {
    api_base: url,
    base_url: url,
    baseUrl: url,
    endpoint: url,
    api_key: 'sk-of-the-caller',
    apiKey: 'sk-of-the-caller',
    organization: 'org-of-the-caller',
    extra_headers: { 'x-of-the-caller': '1', host: new URL(url).host },
    extra_body: { api_base: url },
    custom_llm_provider: 'other',
    proxy: url,
    metadata: { api_base: url },
  };
  for (const stream of [false, true]) {
    const reply = await open.chat(saying('Hi', { ...fields, stream }), { 'x-base-url': url, 'x-api-base': url });
    t.equal(reply.status, 200);
    t.match(reply.headers.get('x-ignored-params'), /api_base, base_url, baseUrl, endpoint, api_key, apiKey, organization/);
    const asked = open.models.requests.at(-1);
    t.equal(asked?.body.model, 'big-1');
    t.notMatch(JSON.stringify(asked), /of-the-caller/);
    t.notMatch(JSON.stringify(asked), url);
  }
  t.equal(calls, 0);
});

t.test('S-16 file names in a request open no file', async (t) => {
  const files = { 'secret.md': 'The treasure lies under the oak.' };
  const server = await TestServer.start(t, AGENTS, { files });
  const file = `${server.started.folder}/secret.md`;
  for (const name of [file, './secret.md', 'secret.md', `file://${file}`, '../'.repeat(20) + file]) {
    const fields = {
      promptFile: name,
      system: { file: name },
      path: name,
      prompt: { file: name },
      use: name,
      plugins: [name],
      instructions: name,
    };
    const reply = await server.chat(saying('Hi', { ...fields, session_id: name }), { 'x-prompt-file': name });
    t.equal(reply.status, 200);
    t.equal(answerOf(reply), 'Hi');
    t.match(server.asked.messages[0], { role: 'system', content: 'You are the assistant.' });
    t.equal((await server.chat(saying('Hi', { model: name }))).status, 400);
    t.equal((await server.get(`/v1/models/${encodeURIComponent(name)}`)).status, 404);
    t.equal((await server.get(`/v1/conversations/${encodeURIComponent(name)}`)).status, 404);
  }
  t.notMatch(JSON.stringify(server.models.requests), 'treasure');
});

t.test('S-09 an open server refuses a foreign Host on every route except probes', async (t) => {
  const asked = open.models.requests.length;
  for (const [method, path] of [...ROUTES, ['GET', '/'], ['GET', '/nowhere']] as const) {
    for (const host of ['evil.example', `evil.example:${open.port}`, 'localhost.evil.example']) {
      const reply = await rawExchange(open.port, `${method} ${path} HTTP/1.1`, `Host: ${host}`, 'Content-Length: 0', '', '');
      t.equal(reply.status, 403, `${method} ${path}`);
      t.match(JSON.parse(reply.body), { error: { type: 'invalid_request_error', param: null, code: 'host_not_allowed' } });
    }
  }
  const [line = '', , ...rest] = rawChat(saying('Hi'));
  t.equal((await rawExchange(open.port, line, 'Host: evil.example', ...rest)).status, 403);
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ];
  t.equal((await rawExchange(open.port, 'GET /v1/models HTTP/1.1', 'Host: evil.example', ...upgrade, '', '')).status, 403);
  for (const path of ['/health', '/healthz', '/readyz']) {
    t.equal((await rawExchange(open.port, `GET ${path} HTTP/1.1`, 'Host: 10.0.0.7:8080', '', '')).status, 200, path);
  }
  t.equal(open.models.requests.length, asked);
});

t.test('S-11 no field or header of a request changes the caller’s identity', async (t) => {
  const claims = {
    project: 'default',
    scope: 'admin',
    scopes: ['chat', 'admin'],
    tenant: 'default',
    principal: { project: 'default' },
  };
  const headers = {
    ...bearer(ACME),
    'x-project': 'default',
    'openai-project': 'default',
    'x-scope': 'admin',
    'x-scopes': 'chat admin',
    'x-forwarded-user': 'root',
    'x-forwarded-for': '127.0.0.1',
    'x-remote-user': 'root',
    'x-tenant-id': 'default',
  };
  t.equal((await closed.chat(saying('Hi', claims), headers)).status, 403, 'an agent of another project');
  t.match((await closed.get('/v1/models?project=default', headers)).body, { data: [{ id: 'billing' }] });
  const reader = await closed.chat(saying('Hi', { model: 'billing', ...claims }), { ...headers, ...bearer(READER) });
  t.strictSame([reader.status, errorOf(reader)], [403, { message: 'This API token lacks the scope `chat`.', type: 'svc_error' }]);
});

t.test('S-17 callers without a token are answered before their bodies are read', async (t) => {
  const clients = await Promise.all(Array.from({ length: 200 }, () => RawClient.open(closed.port)));
  const replies = clients.map(async (client) => {
    client.send(`POST ${CHAT} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', 'Content-Length: 1048576', '', '');
    return wholeReply(client);
  });
  for (const { status, headers } of await Promise.all(replies)) {
    t.equal(status, 401);
    t.equal(headers.connection, 'close', 'so that the server does not wait for the rest');
  }
  for (const { socket } of clients) socket.destroy();
});

t.test('S-21 every growing structure has a limit', async (t) => {
  const asked = open.models.requests.length;
  const tool = (n: number) => ({ type: 'function', function: { name: `f${n}` } });
  const many = <T>(length: number, one: (n: number) => T) => Array.from({ length }, (_, n) => one(n));
  for (const fields of [
    ...[2, 100_000_000, 0, -1, 1.5].map((n) => ({ n })),
    { max_tokens: 0 },
    { max_tokens: 1.5 },
    { messages: many(2_049, () => ({ role: 'user', content: '' })) },
    { stop: ['a', 'b', 'c', 'd', 'e'] },
    { tools: many(129, tool) },
    { metadata: Object.fromEntries(many(17, (n) => [`key${n}`, ''])) },
    { session_id: 'x'.repeat(513) },
    { user: 'x'.repeat(513) },
  ]) {
    const reply = await open.chat(saying('Hi', fields));
    t.equal(reply.status, 400, Object.keys(fields).join());
    t.match(errorOf(reply), { type: 'invalid_request_error', code: /\S/ });
  }
  t.equal(open.models.requests.length, asked);
});

t.test('S-23 an invalid Host gets a 400 on every route', async (t) => {
  for (const server of [open, closed]) {
    for (const path of ['/v1/models', '/health', '/nowhere']) {
      for (const host of [
        'a@evil.com',
        'localhost@evil.com',
        'evil.com/localhost',
        'localhost, evil.com',
        '[::1',
        'localhost:x',
      ]) {
        t.equal((await rawExchange(server.port, `GET ${path} HTTP/1.1`, `Host: ${host}`, '', '')).status, 400, `${path} ${host}`);
      }
    }
  }
});

t.test('S-29 no body changes a prototype', async (t) => {
  const key = fc
    .constantFrom('__proto__', 'constructor', 'prototype', 'admin', 'toString', 'x')
    .map((name) => JSON.stringify(name));
  const leaf = fc.constantFrom('true', '1', '"x"', 'null', '[]');
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc
        .array(fc.tuple(key, tie('value')), { maxLength: 3 })
        .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`),
    ),
  }));
  const cases = fc.sample(value, { numRuns: 10_000, seed: 29 });
  const own = '"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}';
  for (let at = 0; at < cases.length; at += 250) {
    const extra = `"extra":[${cases.slice(at, at + 250).join(',')}]`;
    const body = `{"model":"assistant","messages":[{"role":"user","content":"Hi",${own},${extra}}],${own},${extra}}`;
    t.equal((await open.chat(body)).status, 200);
  }
  t.equal(({} as { admin?: unknown }).admin, undefined);
  t.strictSame(Object.keys(Object.prototype), []);
});

t.test('S-32 no text of a request starts a new log line or header', async (t) => {
  const server = await TestServer.start(t, AGENTS);
  const forged = '\r\n{"level":"error","msg":"forged"}\r\nx-forged: 1\r\n\u2028\u0085';
  for (const body of [
    saying(forged, { model: forged }),
    saying(forged, { [forged]: 1 }),
    saying(forged, { user: forged }),
    saying(forged, { metadata: { forged } }),
    saying(forged, { stream: true }),
    `${forged}{`,
  ]) {
    const { status, headers } = await server.chat(body);
    t.ok(status === 200 || status === 400, String(status));
    t.notOk(headers.has('x-forged'));
  }
  t.equal((await server.get(`/v1/models/${encodeURIComponent(forged)}`)).status, 404);
  const client = await RawClient.open(server.port);
  client.send('GET /v1/models HTTP/1.1', 'Host: localhost', 'X-Request-Id: a\nmsg: forged', 'Connection: close', '', '');
  t.ok([200, 400].includes(replyOf(await client.ended()).status));
  await server.stop();
  t.notOk(server.started.logs.some(({ msg }) => msg === 'forged'));
  t.equal(server.accessLog.length, 8, 'one line each');
});
