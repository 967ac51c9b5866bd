import { eventually } from '@plugboard/testing';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get, mute, post, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const ok = () => ({ status: 200, body: { ok: true } });

t.test('C-002 every response has a unique x-request-id that is logged', async (t) => {
  const broken = get('/v1/broken', () => {
    throw new Error('no');
  });
  const served = await serve(t, { routes: [echo(), broken] });
  const replies = [
    await postJson(`${served.url}/v1/echo`, '{}'),
    await postJson(`${served.url}/v1/echo`, '['),
    await fetch(`${served.url}/nowhere`),
    await fetch(`${served.url}/v1/broken`),
  ];
  t.same(
    replies.map(({ status }) => status),
    [200, 400, 404, 500],
  );
  const ids = replies.map(({ headers }) => headers.get('x-request-id'));
  t.same(
    ids,
    [1, 2, 3, 4].map((n) => `req_${String(n).padStart(32, '0')}`),
  );
  for (const reply of replies) t.equal(reply.headers.get('x-content-type-options'), 'nosniff');
  await served.stop();
  t.same(
    served.requests().map(({ request_id }) => request_id),
    ids,
  );
});

t.test('C-003 an unknown path gets 404 with method and path', async (t) => {
  const { url } = await serve(t);
  for (const method of ['GET', 'POST', 'PUT', 'OPTIONS', 'PROPFIND']) {
    const reply = await fetch(`${url}/v1/xyz?secret=1`, { method });
    t.equal(reply.status, 404);
    t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
    t.same(await reply.json(), {
      error: { message: `Invalid URL (${method} /v1/xyz)`, code: null },
    });
  }
});

t.test('C-004 a path that no plugin serves gets a JSON 404 before the body is read', async (t) => {
  const { url } = await serve(t, { routes: [echo('/v1/chat/completions')] });
  const reply = await postJson(`${url}/v1/responses`, JSON.stringify({ input: 'x'.repeat(1_000_000) }));
  t.equal(reply.status, 404);
  t.equal((await errorOf(reply)).message, 'Invalid URL (POST /v1/responses)');
});

t.test('C-005 an unsupported method gets 405 with the allowed methods', async (t) => {
  const { url } = await serve(t, {
    routes: [
      post('/v1/chat/completions', ok),
      get('/v1/models', ok),
      get('/v1/both', ok),
      { ...get('/v1/both', ok), method: 'DELETE' },
    ],
  });
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
    const reply = await fetch(`${url}/v1/chat/completions`, { method });
    t.equal(reply.status, 405);
    t.equal(reply.headers.get('allow'), 'POST, OPTIONS');
    t.same(await reply.json(), {
      error: {
        message: 'Only POST requests are accepted.',

        code: 'method_not_supported',
      },
    });
  }
  const models = await postJson(`${url}/v1/models`, '{}');
  t.equal(models.status, 405);
  t.equal(models.headers.get('allow'), 'GET, HEAD, OPTIONS');
  t.equal((await errorOf(models)).message, 'Only GET requests are accepted.');
  const both = await postJson(`${url}/v1/both`, '{}');
  t.equal(both.headers.get('allow'), 'GET, HEAD, DELETE, OPTIONS');
  t.equal((await errorOf(both)).message, 'Only GET and DELETE requests are accepted.');
});

t.test('OPTIONS lists the methods of a path', async (t) => {
  const { url } = await serve(t, { routes: [post('/v1/chat/completions', ok)] });
  const reply = await fetch(`${url}/v1/chat/completions`, { method: 'OPTIONS' });
  t.equal(reply.status, 204);
  t.equal(reply.headers.get('allow'), 'POST, OPTIONS');
  t.equal(reply.headers.get('content-length'), null);
  t.equal(await reply.text(), '');
});

t.test('C-007 unknown request headers are ignored', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const reply = await postJson(`${url}/v1/echo`, '{"a":1}', {
    'x-stainless-retry-count': '0',
    'openai-organization': 'org',
    'x-session-affinity': 'abc',
    'sec-fetch-mode': 'cors',
    'api-key': 'k',
    'x-api-key': 'k',
    te: 'trailers',
  });
  t.same(await reply.json(), { a: 1 });
});

t.test("C-008 a caller's own request id is logged and not returned", async (t) => {
  const served = await serve(t, { routes: [get('/v1/x', ok)] });
  for (const name of ['x-client-request-id', 'x-request-id']) {
    const reply = await fetch(`${served.url}/v1/x`, { headers: { [name]: `mine\tby ${name}` } });
    t.match(reply.headers.get('x-request-id'), /^req_[0-9a-f]{32}$/);
  }
  await served.stop();
  t.same(
    served.requests().map(({ client_request_id }) => client_request_id),
    ['mine\tby x-client-request-id', 'mine\tby x-request-id'],
  );
});

t.test('C-009 an idle connection is kept for 72 seconds by default', async (t) => {
  const { url } = await serve(t, { routes: [get('/v1/x', ok)] });
  t.equal((await fetch(`${url}/v1/x`)).headers.get('keep-alive'), 'timeout=72');
  const short = await serve(t, { routes: [get('/v1/x', ok)], config: { keepAlive: '5s' } });
  t.equal((await fetch(`${short.url}/v1/x`)).headers.get('keep-alive'), 'timeout=5');
});

t.test('C-012 a reply is not compressed, whatever Accept-Encoding says', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const reply = await postJson(`${url}/v1/echo`, JSON.stringify({ a: 'x'.repeat(5000) }), {
    'accept-encoding': 'gzip, deflate, br',
  });
  t.equal(reply.headers.get('content-encoding'), null);
  t.equal((await reply.text()).length, 5008);
});

t.test('C-014 Expect: 100-continue is answered when the body is read, not before', async (t) => {
  const principal = { project: 'acme', scopes: ['chat'] } as const;
  const { port } = await serve(t, {
    routes: [echo()],
    providers: [{ authenticate: ({ bearer }) => (bearer === 'good' ? { principal } : { refused: 'wrong' }) }],
    config: { bodyLimit: '1kb' },
  });
  const ask = async (token: string, length: number) => {
    const client = await RawClient.open(port);
    client.send(
      'POST /v1/echo HTTP/1.1',
      'Host: 127.0.0.1',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${length}`,
      'Expect: 100-Continue',
      '',
      '',
    );
    return client;
  };
  const welcome = await ask('good', 7);
  t.equal(await welcome.until(/\r\n\r\n/), 'HTTP/1.1 100 Continue\r\n\r\n');
  welcome.send('{"a":1}');
  t.match(await welcome.until(/\{"a":1\}$/), /HTTP\/1.1 200 OK/);
  t.equal(replyOf(await (await ask('bad', 7)).ended()).status, 401);
  t.equal(replyOf(await (await ask('good', 2000)).ended()).status, 413);
});

t.test('an unknown expectation is ignored', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const client = await RawClient.open(Number(new URL(url).port));
  client.send(
    'POST /v1/echo HTTP/1.1',
    'Host: 127.0.0.1',
    'Expect: miracles',
    'Content-Type: application/json',
    'Content-Length: 2',
    '',
    '{}',
  );
  t.equal(replyOf(await client.until(/\{\}$/)).status, 200);
});

t.test('C-013 no interim response is sent unless requested', async (t) => {
  const { port } = await serve(t, { routes: [echo()] });
  const client = await RawClient.open(port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 2', '', '{}');
  t.match(await client.until(/\{\}$/), /^HTTP\/1\.1 200 OK\r\n/);
});

t.test('C-015 HEAD is answered like GET, without the body', async (t) => {
  async function* never() {
    yield 'never read';
  }
  const { url } = await serve(t, { routes: [get('/v1/x', ok), get('/v1/stream', () => ({ status: 200, body: never() }))] });
  const whole = await fetch(`${url}/v1/x`, { method: 'HEAD' });
  t.equal(whole.status, 200);
  t.equal(whole.headers.get('content-length'), String('{"ok":true}'.length));
  t.equal(await whole.text(), '');
  const streamed = await fetch(`${url}/v1/stream`, { method: 'HEAD' });
  t.equal(streamed.status, 200);
  t.equal(await streamed.text(), '');
  const missing = await fetch(`${url}/v1/y`, { method: 'HEAD' });
  t.equal(missing.status, 404);
});

t.test('a route receives the request as sent, with decoded path parameters', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/things/*id', ({ method, path, params, query, requestId, rawBody, body, principal, acceptedAt, signal }) => ({
        status: 200,
        body: {
          ...{ method, path, params, requestId, rawBody, acceptedAt },
          query: [...query],
          body: body === undefined,
          project: principal.project,
          aborted: signal.aborted,
        },
      })),
    ],
  });
  t.same(await (await fetch(`${url}/v1/things/a%2520b%2Fc/d%20e?x=1&x=%202`)).json(), {
    method: 'GET',
    path: '/v1/things/a%2520b%2Fc/d%20e',
    params: { id: 'a%20b/c/d e' },
    query: [
      ['x', '1'],
      ['x', ' 2'],
    ],
    requestId: 'req_00000000000000000000000000000001',
    rawBody: '',
    body: true,
    project: 'default',
    acceptedAt: 0,
    aborted: false,
  });
});

t.test('a request target may be a whole URL', async (t) => {
  const { port } = await serve(t, {
    routes: [get('/v1/x', ({ path, query }) => ({ status: 200, body: { path, q: query.get('q') } }))],
  });
  for (const [target, answer] of [
    [`http://127.0.0.1:${port}/v1/x?q=a/b`, '{"path":"/v1/x","q":"a/b"}'],
    ['http://other', '{"error":{"message":"Invalid URL (GET http://other)","code":null}}'],
  ]) {
    const client = await RawClient.open(port);
    client.send(`GET ${target} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: close', '', '');
    t.equal(replyOf(await client.ended()).body, answer);
  }
});

t.test('paths are case-sensitive and matched without decoding', async (t) => {
  const { url } = await serve(t, { routes: [get('/v1/models', ok)] });
  t.equal((await fetch(`${url}/v1/Models`)).status, 404);
  t.equal((await fetch(`${url}/v1/%6Dodels`)).status, 404);
  t.equal((await fetch(`${url}/v1/models/`)).status, 200);
});

t.test('pipelined requests of a connection run one after the other', async (t) => {
  const running: string[] = [];
  let most = 0;
  const { port } = await serve(t, {
    routes: [
      post('/v1/slow', async ({ rawBody }) => {
        running.push(rawBody);
        most = Math.max(most, running.length);
        await new Promise((resolve) => setImmediate(resolve));
        running.pop();
        return { status: 200, body: rawBody };
      }),
    ],
  });
  const request = (n: number) =>
    `POST /v1/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"n":${n}}`;
  const client = await RawClient.open(port);
  client.send([1, 2, 3].map(request).join(''));
  const received = await client.until(/\{"n":3\}$/);
  t.same(received.match(/\{"n":\d\}/g), ['{"n":1}', '{"n":2}', '{"n":3}']);
  t.equal(most, 1);
});

t.test('a connection with too many pipelined requests is closed', async (t) => {
  const { route, asked } = mute();
  const served = await serve(t, { routes: [route] });
  const client = await RawClient.open(served.port);
  const request = 'GET /v1/mute HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
  client.send(request.repeat(17));
  const { signal } = await asked;
  t.equal(signal.aborted, false);
  client.send(request);
  t.equal(await client.ended(), '');
  await served.stop();
  t.match(served.requests(), [{ status: 499 }]);
});

t.test('closing a connection drops its waiting pipelined requests', async (t) => {
  const seen: string[] = [];
  let gone: () => void = () => {};
  const left = new Promise<void>((resolve) => {
    gone = resolve;
  });
  const served = await serve(t, {
    routes: [
      get('/v1/wait/:n', ({ params, signal }) => {
        seen.push(String(params.n));
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason);
            gone();
          });
        });
      }),
    ],
  });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/wait/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /v1/wait/2 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await eventually(() => seen.length > 0);
  client.socket.destroy();
  await left;
  await served.stop(); // does not wait for the second
  t.same(seen, ['1']);
  t.match(served.requests(), [{ status: 499, outcome: 'cancelled_by_client' }]);
});
