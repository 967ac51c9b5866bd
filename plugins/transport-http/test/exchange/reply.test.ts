import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { HttpError, type HttpReply } from '../../src/index.js';
import { ask } from '../support/ask.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { get, post, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

async function* nothing(): AsyncGenerator<string> {}

t.test('an object is sent as JSON, a string or bytes as they are, undefined as an empty body', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/object', () => ({ status: 200, body: { text: 'é𝄞' } })),
      get('/v1/list', () => ({ status: 200, body: [1] })),
      get('/v1/string', () => ({ status: 201, headers: { 'content-type': 'text/html' }, body: '<p>é' })),
      get('/v1/plain', () => ({ status: 200, body: 'é' })),
      get('/v1/nothing', () => ({ status: 200 })),
      get('/v1/none', () => ({ status: 204 })),
      get('/v1/bytes', () => ({ status: 200, body: new Uint8Array([0xc3, 0xa9]) })),
      get('/v1/image', () => ({ status: 200, headers: { 'content-type': 'image/svg+xml' }, body: Buffer.from('<svg/>') })),
      get('/v1/unchanged', () => ({ status: 304, headers: { etag: '"1"' } })),
    ],
  });
  const ask = async (path: string) => {
    const reply = await fetch(`${url}/v1/${path}`);
    return [reply.status, reply.headers.get('content-type'), reply.headers.get('content-length'), await reply.text()];
  };
  t.same(await ask('object'), [200, 'application/json; charset=utf-8', '17', '{"text":"é𝄞"}']);
  t.same(await ask('list'), [200, 'application/json; charset=utf-8', '3', '[1]']);
  t.same(await ask('string'), [201, 'text/html', '5', '<p>é']);
  t.same(await ask('plain'), [200, 'text/plain; charset=utf-8', '2', 'é']);
  t.same(await ask('nothing'), [200, null, '0', '']);
  t.same(await ask('none'), [204, null, null, '']);
  t.same(await ask('bytes'), [200, 'application/octet-stream', '2', 'é']);
  t.same(await ask('image'), [200, 'image/svg+xml', '6', '<svg/>']);
  t.same(await ask('unchanged'), [304, null, null, '']);
});

t.test('a reply is the same with middleware that changes nothing, and without', async (t) => {
  const replies: Record<string, HttpReply> = {
    object: { status: 200, body: { text: 'é' } },
    text: { status: 201, headers: { 'Content-Type': 'text/html', 'X-Own': 'a' }, body: '<p>' },
    bytes: { status: 200, body: new Uint8Array([0xc3, 0xa9]) },
    long: { status: 200, body: 'é'.repeat(100_000) },
    empty: { status: 200, body: '' },
    none: { status: 204, body: 'not sent' },
    unchanged: { status: 304, headers: { etag: '"1"' } },
    invalid: { status: 200, headers: { 'x-own': 'a\nb', 'x-left': 'out' }, body: 'not sent' },
    cyclic: { status: 200, body: cyclic() },
    stream: { status: 200, headers: { 'content-type': 'text/plain' }, body: nothing() },
    invalidStream: { status: 200, headers: { 'x-own': 'a\nb' }, body: nothing() },
  };
  const routes = Object.entries(replies).map(([name, reply]) => get(`/v1/${name}`, () => reply));
  const config = { origins: ['https://a.example'] };
  const plain = await serve(t, { routes, config });
  const wrapped = await serve(t, { routes, config, middleware: [(_, next) => next()] });
  for (const name of [...Object.keys(replies), 'missing']) {
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const answers = [plain, wrapped].map(async ({ url }) => {
        const { status, headers, text } = await ask(`${url}/v1/${name}`, { method, headers: { origin: 'https://a.example' } });
        t.match(headers['x-request-id'], /^req_/);
        t.equal(headers['x-content-type-options'], 'nosniff');
        return { status, headers: { ...headers, 'x-request-id': '', date: '' }, text: text.replace(/req_\w+/, '') };
      });
      const [expected, found] = await Promise.all(answers);
      t.strictSame(found, expected, `${method} ${name}`);
    }
  }
});

function cyclic(): object {
  const body: Record<string, unknown> = {};
  body.self = body;
  return body;
}

t.test('a string with a JSON content type is sent unchanged', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/x', () => ({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{"a": 1}' })),
    ],
  });
  const reply = await fetch(`${url}/v1/x`);
  t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  t.equal(await reply.text(), '{"a": 1}');
});

t.test('C-166 an HttpError thrown by a route is sent unchanged', async (t) => {
  const errors: Record<string, HttpError> = {
    plain: new HttpError(400, 'no'),
    coded: new HttpError(503, 'full', { code: 'overloaded', headers: { 'retry-after': '2' } }),
    whole: new HttpError(502, 'failed', { code: 'not shown', body: { failed: true } }),
  };
  const served = await serve(t, {
    routes: [
      get('/v1/:kind', ({ params }) => {
        throw errors[String(params.kind)];
      }),
    ],
  });
  const ask = async (path: string) => {
    const reply = await fetch(`${served.url}/v1/${path}`);
    t.match(reply.headers.get('x-request-id'), /^req_/);
    return [reply.status, reply.headers.get('retry-after'), await reply.json()];
  };
  t.same(await ask('plain'), [400, null, { error: { message: 'no', code: null } }]);
  t.same(await ask('coded'), [503, '2', { error: { message: 'full', code: 'overloaded' } }]);
  t.same(await ask('whole'), [502, null, { failed: true }]);
  await served.stop();
  t.match(served.requests(), [
    { outcome: 'client_error' },
    { outcome: 'agent_error', error_code: 'overloaded' },
    { outcome: 'agent_error', error_code: 'not shown' },
  ]);
});

t.test('C-168 R-052 any other error thrown by a route is a generic 500 with the details in the log', async (t) => {
  const throws: Record<string, unknown> = {
    error: new Error('password at /etc/secret'),
    text: 'just a text',
    nothing: undefined,
  };
  const served = await serve(t, {
    routes: [
      get('/v1/throw/:what', ({ params }) => Promise.reject(throws[String(params.what)])),
      get('/v1/header', () => ({ status: 200, headers: { 'x-bad': 'a\r\nb' }, body: {} })),
      get('/v1/cycle', () => {
        const body: { self?: object } = {};
        body.self = body;
        return { status: 200, body };
      }),
      get('/v1/bad-error', () => {
        throw new HttpError(400, 'x', { headers: { 'x-bad': 'é\n' } });
      }),
      get('/v1/bad-stream', () => ({ status: 200, headers: { 'x-bad': '\n' }, body: nothing() })),
    ],
  });
  const paths = ['throw/error', 'throw/text', 'throw/nothing', 'header', 'cycle', 'bad-error', 'bad-stream'];
  for (const path of paths) {
    const reply = await fetch(`${served.url}/v1/${path}`);
    t.equal(reply.status, 500, path);
    t.same(await reply.json(), {
      error: {
        message: 'The server had an error while processing your request. The server log has the details.',

        code: 'internal_error',
      },
    });
  }
  const lines = served.logs.filter(({ level }) => level === 'error');
  t.equal(lines.length, paths.length);
  t.match(lines[0], {
    err: { message: 'password at /etc/secret', stack: /reply\.test/ },
    route: '/v1/throw/:what',
    request_id: /^req_/,
  });
});

t.test('R-012 the connection of an unread complete reply is destroyed after 30 seconds', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { routes: [get('/v1/large', () => ({ status: 200, body: 'x'.repeat(30_000_000) }))], clock });
  const idle = clock.pending;
  const client = await RawClient.open(served.port);
  client.socket.pause();
  client.send('GET /v1/large HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await eventually(() => clock.pending > idle);
  clock.advance(30_000);
  await served.stop();
  t.match(served.requests(), [{ status: 200, outcome: 'timeout' }]);
});

t.test('a small reply sets no timer', async (t) => {
  const clock = new ManualClock();
  const { url } = await serve(t, { routes: [get('/v1/small', () => ({ status: 200, body: { a: 1 } }))], clock });
  const idle = clock.pending;
  await (await fetch(`${url}/v1/small`)).text();
  t.equal(clock.pending, idle);
});

t.test('the body of a GET is ignored', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', ({ rawBody }) => ({ status: 200, body: { rawBody } }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', 'Content-Length: 100', '', 'abc');
  const { status, body, headers } = replyOf(await client.ended());
  t.equal(status, 200);
  t.equal(body, '{"rawBody":""}');
  t.equal(headers.connection, 'close');
});

t.test('a reply without a body reaches a caller that is still sending', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', () => ({ status: 200, body: { a: 1 } }))] });
  for (const [method, status] of [
    ['HEAD', 200],
    ['OPTIONS', 204],
  ] as const) {
    const client = await RawClient.open(port);
    client.send(`${method} /v1/x HTTP/1.1`, 'Host: 127.0.0.1', 'Content-Length: 100', '', 'abc');
    const reply = replyOf(await client.ended());
    t.equal(reply.status, status);
    t.equal(reply.body, '');
  }
});

t.test('the access log has one line per request, with the fields added by its route', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, {
    clock,
    routes: [
      post('/v1/turn', (request) => {
        request.note({ agent: 'a', steps: 1 });
        clock.advance(12.345);
        request.note({ steps: 2, stream: false });
        return { status: 200, body: {} };
      }),
      get('/v1/failed', ({ note }) => {
        note({ outcome: 'agent_error' });
        return { status: 200, body: {} };
      }),
    ],
  });
  await postJson(`${served.url}/v1/turn?key=secret`, '{}');
  await fetch(`${served.url}/v1/failed`);
  await fetch(`${served.url}/${'x'.repeat(1000)}`);
  await served.stop();
  const [turned, failed, missing] = served.requests();
  t.match(turned, {
    level: 'info',
    request_id: /^req_/,
    method: 'POST',
    route: '/v1/turn',
    status: 200,
    outcome: 'ok',
    duration_ms: 12.35,
    ttfb_ms: 12.35,
    project: 'default',
    agent: 'a',
    steps: 2,
    stream: false,
  });
  t.ok(Number(turned?.bytes_out) > 100);
  t.match(failed, { status: 200, outcome: 'agent_error' });
  t.match(missing, { status: 404, outcome: 'client_error' });
  t.equal(String(missing?.path).length, 512);
  t.notMatch(JSON.stringify(served.logs), /secret/);
});

t.test('a route formats its errors without an own body; the first format is for all other requests', async (t) => {
  const throwing = (path: string, options: ConstructorParameters<typeof HttpError>[2] = {}) =>
    get(path, () => {
      throw new HttpError(418, 'x', options);
    });
  const { url, port } = await serve(t, {
    routes: [
      throwing('/none-of-its-own'),
      {
        ...throwing('/own', { body: { own: true } }),
        formatError: ({ status, code, message }) => ({ body: { status, code, message } }),
      },
      { ...throwing('/second'), formatError: () => ({ body: { second: true } }) },
    ],
  });
  t.same(await (await fetch(`${url}/second`)).json(), { second: true });
  t.same(await (await fetch(`${url}/none-of-its-own`)).json(), { status: 418, message: 'x' });
  t.same(await (await fetch(`${url}/none`)).json(), { status: 404, message: 'Invalid URL (GET /none)' });
  t.same(await (await fetch(`${url}/own`)).json(), { own: true });
  const raw = await RawClient.open(port);
  raw.send('no http at all', '', '');
  t.match(JSON.parse(replyOf(await raw.ended()).body), { status: 400, message: /is not valid HTTP/ });
});
