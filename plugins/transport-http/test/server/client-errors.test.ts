import { ManualClock } from '@plugboard/testing';
import fc from 'fast-check';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, get, mute, post } from '../support/routes.js';
import { serve } from '../support/serve.js';

async function send(port: number, ...lines: string[]) {
  const client = await RawClient.open(port);
  client.send(...lines);
  return replyOf(await client.ended());
}

t.test('C-006 malformed HTTP gets a JSON 400 with a logged request id', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { clock });
  for (const text of [
    'hello\r\n\r\n',
    'GET / HTTP/1.1\r\nHost x\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]) {
    const { status, headers, body } = await send(served.port, text);
    t.equal(status, 400);
    t.equal(headers.connection, 'close');
    t.equal(headers['content-type'], 'application/json; charset=utf-8');
    t.equal(headers['x-content-type-options'], 'nosniff');
    t.match(JSON.parse(body), {
      error: { message: /^The request is not valid HTTP/, code: null },
    });
    t.match(served.requests().at(-1), { request_id: headers['x-request-id'], status: 400, outcome: 'client_error' });
    clock.advance(1_000); // such lines are throttled
  }
});

t.test('a wrong Content-Length gets 400', async (t) => {
  const { port } = await serve(t, { routes: [post('/v1/work', () => new Promise(() => {}))] });
  const head = ['POST /v1/work HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json'];
  for (const lines of [
    ['Content-Length: 2', 'Transfer-Encoding: chunked', '', '0', '', ''],
    ['Content-Length: 2', 'Content-Length: 3', '', '{}'],
    ['Content-Length: -2', '', '{}'],
    ['Transfer-Encoding: chunked', '', 'zz', '{}', ''],
    ['Content-Length: 2', '', '{}more'],
  ]) {
    const { status, body } = await send(port, ...head, ...lines);
    t.equal(status, 400, lines.join());
    t.match(JSON.parse(body).error, { message: /is not valid HTTP/ });
  }
});

t.test('a head that is too large gets 431', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', () => ({ status: 200 }))] });
  const large = await send(port, 'GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', `X: ${'x'.repeat(17_000)}`, '', '');
  t.equal(large.status, 431);
  t.equal(JSON.parse(large.body).error.code, 'headers_too_large');
  const headers = (count: number) => Array.from({ length: count }, (_, n) => `x-${n}: y`);
  const many = await send(port, 'GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', 'Connection: close', ...headers(99), '', '');
  t.equal(many.status, 431);
  t.equal(JSON.parse(many.body).error.code, 'headers_too_large');
  t.equal((await send(port, 'GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', 'Connection: close', ...headers(98), '', '')).status, 200);
});

t.test('a request without Host gets 400 in HTTP/1.1 and is served in HTTP/1.0', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', () => ({ status: 200, body: {} }))] });
  const { status, body } = await send(port, 'GET /v1/x HTTP/1.1', 'Connection: close', '', '');
  t.equal(status, 400);
  t.match(JSON.parse(body).error.message, /Host/);
  t.equal((await send(port, 'GET /v1/x HTTP/1.0', '', '')).status, 200);
});

t.test('a head that does not arrive in time gets a JSON 408', async (t) => {
  const { port } = await serve(t, { config: { headersTimeout: '100ms' } });
  const { status, headers, body } = await send(port, 'GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', '');
  t.equal(status, 408);
  t.equal(JSON.parse(body).error.code, 'request_timeout');
  t.match(headers['x-request-id'], /^req_/);
});

t.test('CONNECT gets a JSON 404', async (t) => {
  const { port } = await serve(t);
  const { status, body } = await send(port, 'CONNECT example.com:443 HTTP/1.1', 'Host: example.com', '', '');
  t.equal(status, 404);
  t.equal(JSON.parse(body).error.message, 'Invalid URL (CONNECT example.com:443)');
});

t.test('an upgrade without a handler is answered like a plain request', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', () => ({ status: 200, body: {} }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/x HTTP/1.1', 'Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket', '', '');
  t.equal(replyOf(await client.until(/\{\}$/)).status, 200);
});

t.test('malformed bytes after a request abort it with an error', async (t) => {
  const { route, asked } = mute();
  const served = await serve(t, { routes: [route] });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/mute HTTP/1.1', 'Host: 127.0.0.1', '', 'nonsense\r\n\r\n');
  t.equal(replyOf(await client.ended()).status, 400);
  t.equal((await asked).signal.aborted, true);
});

t.test('malformed bytes after a request whose reply is streaming destroy the connection', async (t) => {
  async function* body() {
    yield 'some';
    await new Promise(() => {});
  }
  const served = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: body() }))] });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await client.until(/some/);
  client.send('nonsense\r\n\r\n');
  t.match(await client.ended(), /some\r\n$/);
  await served.stop();
  t.match(served.requests(), [{ outcome: 'cancelled_by_client' }]);
});

t.test('a connection reset before a request is only counted', async (t) => {
  const served = await serve(t);
  const client = await RawClient.open(served.port);
  /** What was sent before is read when another request is answered. */
  const answered = () => fetch(`${served.url}/other`).then((reply) => reply.text());
  client.send('GET /v1/x HT');
  await answered();
  client.socket.resetAndDestroy();
  await answered();
  await served.stop();
  t.match(served.logs.at(-1), { msg: 'stopped', disconnects: 1 });
  t.same(
    served.requests().filter(({ status }) => status !== 404),
    [],
  );
});

t.test('R-090 R-094 any bytes get no 5xx, errors are JSON, and the server continues', async (t) => {
  const served = await serve(t, {
    routes: [echo(), get('/v1/x', () => ({ status: 200, body: {} }))],
    providers: [
      { authenticate: ({ bearer }) => (bearer === 'good' ? { principal: { project: 'p', scopes: [] } } : { refused: 'no' }) },
    ],
    config: { bodyLimit: '1kb' },
  });
  const word = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('', '0', '1', '\r\n', ' ', '\0', '{', '}'));
  const header = fc.oneof(
    {
      arbitrary: fc.tuple(
        fc.constantFrom(
          'Content-Length',
          'Transfer-Encoding',
          'Content-Type',
          'Authorization',
          'Expect',
          'Connection',
          'Upgrade',
          'Host',
          'Content-Encoding',
        ),
        fc.oneof(
          word,
          fc.constantFrom('2', 'chunked', 'application/json', 'Bearer good', '100-continue', 'keep-alive', 'gzip', 'x'),
        ),
      ),
      weight: 3,
    },
    { arbitrary: fc.tuple(word, word), weight: 1 },
  );
  const request = fc
    .record({
      method: fc.oneof(fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS', 'DELETE', 'PUT', 'CONNECT', 'TRACE'), word),
      target: fc.oneof(
        fc.constantFrom('/v1/echo', '/v1/x', '/', '*', 'http://x/v1/x', '//', '/v1/%'),
        word.map((text) => `/v1/${text}`),
      ),
      version: fc.oneof({ arbitrary: fc.constantFrom('HTTP/1.1', 'HTTP/1.0'), weight: 9 }, { arbitrary: word, weight: 1 }),
      headers: fc.array(header, { maxLength: 8 }),
      body: fc.oneof(word, fc.json(), fc.constantFrom('2\r\n{}\r\n0\r\n\r\n', '{}', 'x'.repeat(2000))),
    })
    .map(({ method, target, version, headers, body }) =>
      [`${method} ${target} ${version}`, ...headers.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n'),
    );
  await fc.assert(
    fc.asyncProperty(request, async (text) => {
      const client = await RawClient.open(served.port);
      client.send(text);
      client.socket.end();
      const received = await client.ended();
      if (received === '') return true; // only a caller that asked for nothing gets nothing
      const { status, headers, body } = replyOf(received.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, ''));
      if (status < 400 || body === '') return status < 500 && headers['x-request-id']?.startsWith('req_') === true;
      const { error } = JSON.parse(body.slice(0, Number(headers['content-length'])));
      return status < 500 && headers['x-request-id']?.startsWith('req_') === true && error.message !== '' && error.type !== '';
    }),
    { numRuns: 500 },
  );
  const alive = await fetch(`${served.url}/v1/x`, { headers: { authorization: 'Bearer good' } });
  t.equal(alive.status, 200);
  await served.stop();
  t.same(
    served.logs.filter(({ level }) => level === 'error'),
    [],
  );
});

t.test('S-33 a CONNECT request whose connection is reset is an ordinary disconnect', async (t) => {
  const served = await serve(t, { routes: [get('/v1/x', () => ({ status: 200, body: {} }))] });
  for (let round = 0; round < 20; round++) {
    const client = await RawClient.open(served.port);
    client.send('CONNECT other.example:443 HTTP/1.1', 'Host: other.example:443', '', '');
    if (round % 2 === 1) await client.until(/404/);
    client.socket.resetAndDestroy();
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal((await fetch(`${served.url}/v1/x`)).status, 200);
});
