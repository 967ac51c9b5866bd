import t from 'tap';
import { ASSISTANT, TestServer } from '../support/test-server.js';

const TRANSPORTS = `
transports:
  http: { port: 0, bodyLimit: 20kb }
  models: {}
  messages: {}
`;
const TOKEN = 'token-of-the-tests-0001';
const OTHER = 'token-of-the-tests-0002';
const AUTH = `
auth:
  bearer:
    tokens:
      - { name: usual, project: default, token: ${TOKEN} }
      - { name: other, project: default, token: ${OTHER}, requestsPerMinute: 1 }
      - { name: weak, project: default, scopes: ["models:read"], token: token-of-the-tests-0003 }
`;
const server = await TestServer.start(t, TRANSPORTS + AUTH + ASSISTANT);
const hello = { model: 'assistant', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] };
const post = (headers: Readonly<Record<string, string>> = { 'x-api-key': TOKEN }, body: unknown = hello, path = '/v1/messages') =>
  server.request('POST', path, headers, body);

t.test('CL-24 errors of the server itself have the form of the protocol', async (t) => {
  const cases = [
    [await post({}), 401, 'authentication_error'],
    [await post({ 'x-api-key': 'token-of-the-tests-0003' }), 403, 'permission_error'],
    [await post(undefined, '{'), 400, 'invalid_request_error'],
    [await post(undefined, 'x'.repeat(30_000)), 413, 'request_too_large'],
    [await post({ 'x-api-key': TOKEN, 'content-type': 'text/plain' }, 'x'), 400, 'invalid_request_error'],
    [await server.get('/v1/messages', { 'x-api-key': TOKEN }), 405, 'invalid_request_error'],
    [await post(undefined, {}, '/v1/messages/batches'), 404, 'not_found_error'],
    [await server.get('/v1/models', { 'anthropic-version': '2023-06-01' }), 401, 'authentication_error'],
    [
      await server.get('/v1/files', { 'anthropic-version': '2023-06-01', authorization: `Bearer ${TOKEN}` }),
      404,
      'not_found_error',
    ],
    [await server.get('/v1/models/nobody', { 'anthropic-version': '2023-06-01', 'x-api-key': TOKEN }), 404, 'not_found_error'],
  ] as const;
  for (const [{ status, headers, body }, wanted, type] of cases) {
    t.equal(status, wanted);
    t.match(body, { type: 'error', error: { type, message: /\w/ }, request_id: headers.get('request-id') });
    t.match(headers.get('request-id'), /^req_/);
    t.equal(headers.get('request-id'), headers.get('x-request-id'));
  }
});

t.test('CL-24 an unknown path has the error of the protocol for its clients only', async (t) => {
  t.match(await server.get('/v1/files', { authorization: `Bearer ${TOKEN}` }), {
    status: 404,
    body: { error: { type: 'invalid_request_error', param: null } },
  });
});

t.test('CL-24 a limit of requests is a 429 with the time to wait', async (t) => {
  await post({ 'x-api-key': OTHER });
  const { status, headers, body } = await post({ 'x-api-key': OTHER });
  t.equal(status, 429);
  t.match(body, { error: { type: 'rate_limit_error' } });
  t.ok(Number(headers.get('retry-after')) >= 1);
});

t.test('CL-25 the token is in x-api-key or Authorization, and two that differ are refused', async (t) => {
  const of = async (headers: Readonly<Record<string, string>>) => (await post(headers)).status;
  t.equal(await of({ 'x-api-key': TOKEN }), 200);
  t.equal(await of({ authorization: `Bearer ${TOKEN}` }), 200);
  t.equal(await of({ 'x-api-key': TOKEN, authorization: `Bearer ${TOKEN}` }), 200);
  t.equal(await of({ 'x-api-key': TOKEN, authorization: `Bearer ${OTHER}` }), 401);
  t.equal(await of({ 'x-api-key': OTHER, authorization: `Bearer ${TOKEN}` }), 401);
  t.equal(await of({ 'x-api-key': TOKEN, authorization: 'Basic abc' }), 401);
  t.equal(await of({ 'x-api-key': `${TOKEN} ${OTHER}` }), 401);
  t.equal(await of({ 'x-api-key': '' }), 401);
  t.equal((await server.get('/v1/models', { 'x-api-key': TOKEN })).status, 401, 'no other route reads the header');
  t.equal((await server.get('/v1/models?limit=5', { 'x-api-key': TOKEN })).status, 200);
  t.notOk(JSON.stringify(server.started.logs).includes(TOKEN), 'no log line has the token');
});

t.test('CL-25 clients ask whether the server is there, without a token', async (t) => {
  for (const path of ['/', '/api/hello']) {
    const { status, text } = await server.request('HEAD', path);
    t.strictSame([status, text], [200, '']);
    t.equal((await server.get(path)).status, 404);
  }
});

t.test('CL-25 any version, any beta and any query are accepted', async (t) => {
  const headers = { 'x-api-key': TOKEN, 'anthropic-version': '2049-01-01', 'anthropic-beta': 'dreams-2049-01-01' };
  const { status, headers: sent } = await post(headers, { ...hello, dreams: true }, '/v1/messages?beta=true');
  t.equal(status, 200);
  t.equal(sent.get('x-ignored-params'), 'dreams');
});

t.test('CL-26 the list of models has the shape that the request asks for', async (t) => {
  const bearer = { authorization: `Bearer ${TOKEN}` };
  t.match((await server.get('/v1/models', bearer)).body, { object: 'list', data: [{ object: 'model', owned_by: 'svc:agent' }] });
  const own = { data: [{ type: 'model', id: 'assistant' }, { id: 'fast' }], has_more: false, first_id: 'assistant' };
  t.match((await server.get('/v1/models', { ...bearer, 'anthropic-version': '2023-06-01' })).body, own);
  t.match((await server.get('/v1/models?limit=100', bearer)).body, own);
  t.match((await server.get('/v1/models/fast', { ...bearer, 'anthropic-version': '2023-06-01' })).body, { type: 'model' });
  t.match((await server.get('/v1/models/fast', bearer)).body, { object: 'model' });
});

t.test('CL-21 a history of 5 MB and an answer of a cut connection', async (t) => {
  const large = await TestServer.start(t, TRANSPORTS.replace(', bodyLimit: 20kb', '') + ASSISTANT);
  const turns = Array.from({ length: 50 }, (_, index) => ({
    role: index % 2 ? 'assistant' : 'user',
    content: 'x'.repeat(100_000),
  }));
  const messages = [...turns, { role: 'user', content: 'Well?' }];
  large.models.enqueue({ text: 'Long.' });
  t.match((await large.request('POST', '/v1/messages', {}, { ...hello, messages })).body, { content: [{ text: 'Long.' }] });
  large.models.enqueue({ text: ['a', 'b'], cut: { afterEvents: 2 } });
  const { status, text } = await large.request('POST', '/v1/messages', {}, { ...hello, stream: true });
  t.equal(status, 200);
  t.match(text, /event: error\ndata: \{"type":"error","error":\{"type":"api_error"[^\n]*\n\n$/);
  t.notMatch(text, /message_stop/);
});

t.test('CL-22 a tool of the client with the name of one of the agent is a 400 that names it', async (t) => {
  const agents = ASSISTANT.replace('assistant: {', 'assistant: { tools: [clock],').replace(
    '\nagents:',
    '\ntools: { clock: {} }\nagents:',
  );
  const own = await TestServer.start(t, TRANSPORTS + agents);
  const tool = (name: string) => ({ name, input_schema: { type: 'object' } });
  for (const stream of [false, true]) {
    const tools = [tool('read'), tool('clock')];
    const { status, body } = await own.request('POST', '/v1/messages', {}, { ...hello, stream, tools });
    t.equal(status, 400);
    t.match(body, {
      type: 'error',
      error: { type: 'invalid_request_error', message: /^tools\.1\.name: The tool 'clock' has the same name/ },
    });
  }
  t.equal(own.models.requests.length, 0);
});

t.test('CL-21 a request whose stream broke, sent again with its key, runs no tool twice', async (t) => {
  const agents = ASSISTANT.replace('assistant: {', 'assistant: { tools: [clock],').replace(
    '\nagents:',
    '\ntools: { clock: {} }\nagents:',
  );
  const own = await TestServer.start(t, TRANSPORTS + AUTH + agents);
  const headers = { 'x-api-key': TOKEN, 'idempotency-key': 'step-1' };
  own.models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: ['It is', ' noon.'] });
  const send = () => own.request('POST', '/v1/messages', headers, { ...hello, stream: true });
  const first = await send();
  const again = await send();
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.equal(own.models.requests.length, 2);
  const textOf = (text: string) => [...text.matchAll(/"text_delta","text":"([^"]*)"/g)].map(([, piece]) => piece).join('');
  t.strictSame([textOf(first.text), textOf(again.text)], ['It is noon.', 'It is noon.']);
  const other = await own.request('POST', '/v1/messages', headers, { ...hello, max_tokens: 5 });
  t.match([other.status, other.body], [422, { error: { type: 'invalid_request_error' } }]);
});
