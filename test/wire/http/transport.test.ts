import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { RawClient } from '../../../plugins/transport-http/test/support/raw-client.js';
import { rawChat, rawExchange, wholeReply } from '../../support/raw-exchange.js';
import { ASSISTANT, answerOf, errorOf, type Reply, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { TOKENS, tokens } from '../../support/tokens.js';

const CHAT = '/v1/chat/completions';
const server = await TestServer.start(t);

t.test('C-001 the documented endpoints exist, and those of chat and models only under /v1', async (t) => {
  t.equal((await server.chat(saying('Hi'))).status, 200);
  for (const path of ['/v1/models', '/health', '/healthz']) t.equal((await server.get(path)).status, 200, path);
  for (const path of ['/models', '/chat/completions', '/v1/health', '/v1/healthz', '/v1', '/'])
    t.equal((await server.get(path)).status, 404, path);
});

t.test('C-002 every response has a unique request id, which is also in the log', async (t) => {
  const clock = new ManualClock();
  const server = await TestServer.start(t, TRANSPORTS + ASSISTANT, { clock });
  server.models.enqueue({}, {}, { status: 400 });
  const ids = new Set<string>();
  for (const [status, send] of [
    [200, () => server.chat(saying('Hi'))],
    [200, () => server.stream(saying('Hi'))],
    [400, () => server.chat('{')],
    [400, () => server.chat(saying('Hi', { stream: true, n: 2 }))],
    [502, () => server.chat(saying('the model server refuses'))],
    [200, () => server.get('/v1/models')],
    [200, () => server.get('/health')],
    [404, () => server.get('/nowhere')],
    [405, () => server.request('PUT', CHAT)],
    [204, () => server.request('OPTIONS', CHAT)],
  ] as const) {
    const reply = await send();
    t.equal(reply.status, status);
    const id = reply.headers.get('x-request-id') ?? '';
    t.match(id, /^req_[0-9a-f]{32}$/);
    t.notOk(ids.has(id));
    ids.add(id);
    const line = await eventually(() => server.accessLog.find(({ request_id }) => request_id === id));
    t.equal(line.status, status);
    clock.advance(1_000); // requests without a credential are logged once a second (S-40)
  }
});

t.test('C-003 C-004 an unknown path gets a 404 in JSON that repeats the path', async (t) => {
  const notFound = (method: string, path: string) => ({
    error: { message: `Invalid URL (${method} ${path})`, type: 'invalid_request_error', param: null, code: null },
  });
  for (const [method, path] of [
    ['GET', '/v1/nowhere'],
    ['DELETE', '/v1/chat/completions/1'],
    ['POST', '/v1/responses'],
    ['POST', '/v1/embeddings'],
  ] as const) {
    const reply = await server.request(method, path);
    t.equal(reply.status, 404);
    t.strictSame(reply.body, notFound(method, path));
  }
  const responses = await fetch(`${server.url}/v1/responses`, { method: 'POST', body: '{"model":"assistant","input":"Hi"}' });
  t.strictSame([responses.status, await responses.json()], [404, notFound('POST', '/v1/responses')]);
});

t.test('C-005 an unsupported method gets a 405 with the allowed ones', async (t) => {
  for (const [path, methods, allow] of [
    [CHAT, ['GET', 'PUT', 'PATCH', 'DELETE'], 'POST, OPTIONS'],
    ['/v1/models', ['POST', 'PUT', 'PATCH', 'DELETE'], 'GET, HEAD, OPTIONS'],
    ['/v1/models/assistant', ['DELETE'], 'GET, HEAD, OPTIONS'],
  ] as const) {
    for (const method of methods) {
      const reply = await server.request(method, path);
      t.equal(reply.status, 405, `${method} ${path}`);
      t.equal(reply.headers.get('allow'), allow);
      t.match(errorOf(reply), { type: 'invalid_request_error', param: null, code: 'method_not_supported' });
    }
  }
  t.equal(errorOf(await server.get(CHAT)).message, 'Only POST requests are accepted.');
});

t.test('C-006 every response with a body is JSON, even if the request was not HTTP', async (t) => {
  const isJson = (type: string | null | undefined) => /^application\/json(; charset=utf-8)?$/.test(type ?? '');
  const replies: Reply[] = [
    await server.chat(saying('Hi')),
    await server.chat('nonsense'),
    await server.chat(saying('Hi'), { 'content-type': 'text/plain' }),
    await server.chat(saying('Hi'), { 'content-encoding': 'gzip' }),
    await server.get('/v1/models'),
    await server.get('/health'),
    await server.get('/%ff%'),
    await server.request('PROPFIND', '/v1/models'),
  ];
  for (const reply of replies) {
    t.ok(isJson(reply.headers.get('content-type')));
    t.type(reply.body, 'object');
  }
  for (const [status, ...lines] of [
    [400, 'GARBAGE', '', ''],
    [400, 'GET /v1/models HTTP/1.1', '', ''], // no Host
    [400, `POST ${CHAT} HTTP/1.1`, 'Host: localhost', 'Content-Length: 1', 'Content-Length: 2', '', ''],
    [400, `POST ${CHAT} HTTP/1.1`, 'Host: localhost', 'Content-Length: 1', 'Transfer-Encoding: chunked', '', ''],
    [404, 'CONNECT example.org:443 HTTP/1.1', 'Host: localhost', '', ''],
    [431, 'GET /v1/models HTTP/1.1', 'Host: localhost', `X-Long: ${'x'.repeat(17_000)}`, '', ''],
    [431, 'GET /v1/models HTTP/1.1', 'Host: localhost', ...Array<string>(101).fill('X: y'), '', ''],
  ] as const) {
    const reply = await rawExchange(server.port, ...lines);
    t.equal(reply.status, status, lines[0]);
    t.ok(isJson(reply.headers['content-type']));
    t.match(reply.headers['x-request-id'], /^req_/);
    t.match(JSON.parse(reply.body), { error: { message: /\S/, type: 'invalid_request_error' } });
  }
});

t.test('C-007 C-008 additional client headers change nothing, and a client’s request id is only logged', async (t) => {
  const headers = {
    'x-stainless-lang': 'js',
    'x-stainless-retry-count': '1',
    'openai-organization': 'org-1',
    'openai-beta': 'assistants=v2',
    'x-session-affinity': 'ses_1',
    'x-parent-session-id': 'ses_0',
    'sec-fetch-mode': 'cors',
    'api-key': 'x',
    'x-api-key': 'x',
    authorization: 'Bearer sk-whatever',
    'idempotency-key': '1',
    'x-request-id': 'mine',
    'x-client-request-id': 'client-7',
  };
  const reply = await server.chat(saying('Hi'), headers);
  t.equal(answerOf(reply), 'Hi');
  t.notOk(reply.headers.has('x-ignored-params'));
  const id = reply.headers.get('x-request-id');
  t.match(id, /^req_[0-9a-f]{32}$/);
  const line = await eventually(() => server.accessLog.find(({ request_id }) => request_id === id));
  t.equal(line.client_request_id, 'client-7');
});

t.test('C-009 idle connections stay open for more than 65 s, as the Keep-Alive header says', async (t) => {
  const raw = await RawClient.open(server.port);
  raw.send('GET /health HTTP/1.1', 'Host: localhost', '', '');
  const first = await wholeReply(raw);
  const seconds = Number(/^timeout=(\d+)$/.exec(first.headers['keep-alive'] ?? '')?.[1]);
  t.ok(seconds >= 65, `${seconds} s`);
  raw.send('GET /v1/models HTTP/1.1', 'Host: localhost', '', '');
  t.match(await raw.until(/"list"/), /HTTP\/1\.1 200 OK/, 'the connection serves on');
  raw.socket.destroy();
});

for (const moment of ['before the first token', 'in the middle of a stream', 'while a whole answer is made'] as const) {
  t.test(`C-010 a caller that disconnects ${moment} ends the model call`, async (t) => {
    const gate = Promise.withResolvers<void>();
    t.teardown(() => gate.resolve());
    const number = server.models.requests.length + 1;
    const inStream = moment === 'in the middle of a stream';
    server.models.enqueue(inStream ? { text: ['Once', gate.promise] } : { before: gate.promise });
    if (inStream) {
      const stream = await server.open(saying('Tell me'));
      await stream.until('Once');
      stream.leave();
    } else {
      const abort = new AbortController();
      const stream = moment === 'before the first token';
      const body = JSON.stringify(saying('Tell me', { stream }));
      const headers = { 'content-type': 'application/json' };
      const asking = fetch(server.url + CHAT, { method: 'POST', headers, body, signal: abort.signal });
      await server.models.received(number);
      abort.abort();
      await t.rejects(asking, { name: 'AbortError' });
    }
    const asked = await server.models.received(number);
    t.equal(await asked.ended, 'aborted');
    await eventually(() => server.accessLog.at(-1)?.outcome === 'cancelled_by_client');
    t.equal(server.accessLog.at(-1)?.status, 499);
    t.equal(server.models.requests.length, number, 'it is not made again');
  });
}

t.test('C-011 closing the connection right after [DONE] does not count as an early disconnect', async (t) => {
  for (let round = 1; round <= 5; round++) {
    const raw = await RawClient.open(server.port);
    raw.socket.on('data', (text) => {
      if (String(text).includes('[DONE]')) raw.socket.resetAndDestroy();
    });
    const lines = server.accessLog.length;
    raw.send(...rawChat(saying(`Round ${round}`, { stream: true, session_id: 'closes-early' })));
    await raw.ended();
    const line = await eventually(() => server.accessLog[lines]);
    t.match(line, { status: 200, outcome: 'ok' });
  }
  await server.chat(saying('And now?', { session_id: 'closes-early' }));
  t.strictSame(
    server.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content),
    ['Round 1', 'Round 2', 'Round 3', 'Round 4', 'Round 5', 'And now?'],
    'every turn was kept',
  );
});

t.test('C-012 answers are correct if the caller accepts compression, and streams are never compressed', async (t) => {
  const headers = { 'accept-encoding': 'gzip, deflate, br, zstd' };
  const whole = await server.chat(saying('Hello there'), headers);
  t.equal(answerOf(whole), 'Hello there');
  const streamed = await server.stream(saying('Hello there'), headers);
  t.equal(streamed.text, 'Hello there');
  t.notOk(streamed.headers.has('content-encoding'));
});

t.test('C-013 no bytes are sent before the status, however long a turn takes', async (t) => {
  const gate = Promise.withResolvers<void>();
  const number = server.models.requests.length + 1;
  server.models.enqueue({ toolCalls: [{ name: 'nothing', arguments: {} }] }, { before: gate.promise, text: 'At last.' });
  const raw = await RawClient.open(server.port);
  raw.send(...rawChat(saying('Take your time')));
  await server.models.received(number + 1);
  t.equal(raw.received, '');
  gate.resolve();
  t.match(await raw.until(/At last/), /^HTTP\/1\.1 200 OK\r\n/);
  raw.socket.destroy();
});

t.test('C-014 Expect: 100-continue is answered after the credential and the length were checked', async (t) => {
  const { port } = await TestServer.start(t, TRANSPORTS + ASSISTANT + TOKENS, { files: tokens });
  const body = JSON.stringify(saying('Hi'));
  const begin = async (token: string, length: number) => {
    const raw = await RawClient.open(port);
    t.teardown(() => raw.socket.destroy());
    raw.send(
      `POST ${CHAT} HTTP/1.1`,
      'Host: localhost',
      'Content-Type: application/json',
      'Expect: 100-continue',
      `Authorization: Bearer ${token}`,
      `Content-Length: ${length}`,
      '',
      '',
    );
    return raw;
  };
  t.match(await (await begin('wrong', body.length)).until(/\r\n\r\n/), /^HTTP\/1\.1 401 /);
  t.match(await (await begin('token-of-default', 30 * 2 ** 20)).until(/\r\n\r\n/), /^HTTP\/1\.1 413 /);
  const welcome = await begin('token-of-default', body.length);
  t.equal(await welcome.until(/\r\n\r\n/), 'HTTP/1.1 100 Continue\r\n\r\n');
  welcome.send(body);
  t.match(await welcome.until(/"finish_reason":"stop"/), /Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
});

t.test('C-015 HEAD returns the headers of GET without the body', async (t) => {
  for (const path of ['/health', '/healthz', '/v1/models', '/v1/models/assistant', '/v1/models/nobody']) {
    const get = await server.get(path);
    const head = await server.request('HEAD', path);
    t.equal(head.status, get.status);
    t.equal(head.text, '');
    for (const name of ['content-type', 'content-length'])
      t.equal(head.headers.get(name), get.headers.get(name), `${path} ${name}`);
  }
});
