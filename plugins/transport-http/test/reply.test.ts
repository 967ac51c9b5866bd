import { once } from 'node:events';
import { ManualClock } from '@plugboard/kernel/testing';
import t from 'tap';
import { type HttpError, invalidRequest, serverError, serviceError } from '../src/index.js';
import { RawClient, replyOf } from './raw-client.js';
import { get, post, postJson } from './routes.js';
import { serve } from './serve.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A body that is written item by item from the test, and tells when it was left. */
class Script implements AsyncIterableIterator<string> {
  readonly #items: (string | Error | undefined)[] = [];
  #wanted: (() => void) | undefined;
  left = false;
  pulled = 0;

  /** An error is thrown; undefined is the end. */
  say(item: string | Error | undefined): void {
    this.#items.push(item);
    this.#wanted?.();
  }

  async next(): Promise<IteratorResult<string>> {
    this.pulled++;
    while (this.#items.length === 0 && !this.left) {
      await new Promise<void>((resolve) => {
        this.#wanted = resolve;
      });
    }
    const item = this.#items.shift();
    if (item instanceof Error) throw item;
    return item === undefined ? { done: true, value: undefined } : { done: false, value: item };
  }

  async return(): Promise<IteratorResult<string>> {
    this.left = true;
    this.#wanted?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8' };

t.test('an object is sent as JSON, a string as it stands, nothing as nothing', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/object', () => ({ status: 200, body: { text: 'é𝄞' } })),
      get('/v1/list', () => ({ status: 200, body: [1] })),
      get('/v1/string', () => ({ status: 201, headers: { 'content-type': 'text/html' }, body: '<p>é' })),
      get('/v1/plain', () => ({ status: 200, body: 'é' })),
      get('/v1/nothing', () => ({ status: 200 })),
      get('/v1/none', () => ({ status: 204 })),
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
});

t.test('a string of a JSON type is sent as it stands', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/x', () => ({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{"a": 1}' })),
    ],
  });
  const reply = await fetch(`${url}/v1/x`);
  t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  t.equal(await reply.text(), '{"a": 1}');
});

t.test('C-166 what a route throws as an HttpError is answered as it says', async (t) => {
  const errors: Record<string, HttpError> = {
    invalid: invalidRequest('no', { param: 'x', code: 'y', headers: { 'x-should-retry': 'false' } }),
    service: serviceError(502, 'failed'),
    server: serverError(503, 'overloaded', 'full', { 'retry-after': '2' }),
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
    return [reply.status, reply.headers.get('x-should-retry') ?? reply.headers.get('retry-after'), await reply.json()];
  };
  t.same(await ask('invalid'), [
    400,
    'false',
    { error: { message: 'no', type: 'invalid_request_error', param: 'x', code: 'y' } },
  ]);
  t.same(await ask('service'), [502, null, { error: { message: 'failed', type: 'svc_error' } }]);
  t.same(await ask('server'), [503, '2', { error: { message: 'full', type: 'server_error', param: null, code: 'overloaded' } }]);
  await served.stop();
  t.match(served.requests(), [
    { outcome: 'client_error' },
    { outcome: 'agent_error' },
    { outcome: 'agent_error', error_code: 'overloaded' },
  ]);
});

t.test('C-168 whatever else a route throws is a 500 that tells nothing, and a log line that tells all', async (t) => {
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
        throw invalidRequest('x', { headers: { 'x-bad': 'é\n' } });
      }),
      get('/v1/bad-stream', () => ({ status: 200, headers: { 'x-bad': '\n' }, body: new Script() })),
    ],
  });
  const paths = ['throw/error', 'throw/text', 'throw/nothing', 'header', 'cycle', 'bad-error', 'bad-stream'];
  for (const path of paths) {
    const reply = await fetch(`${served.url}/v1/${path}`);
    t.equal(reply.status, 500, path);
    t.same(await reply.json(), {
      error: {
        message: 'The server had an error while it processed your request; its log tells more.',
        type: 'server_error',
        param: null,
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

t.test('a streamed body goes out as it comes, with the head before its first item', async (t) => {
  const script = new Script();
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, headers: EVENTS, body: script }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  const { status, headers } = replyOf(await client.until(/\r\n\r\n/));
  t.equal(status, 200);
  t.match(headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'transfer-encoding': 'chunked',
    'x-request-id': /^req_/,
  });
  t.notOk('content-length' in headers);
  script.say('data: é\n\n');
  await client.until(/a\r\ndata: \xc3\xa9\n\n\r\n/);
  script.say('');
  script.say('data: 2\n\n');
  script.say(undefined);
  const { body } = replyOf(await client.until(/\r\n0\r\n\r\n$/));
  t.equal(body, 'a\r\ndata: \xc3\xa9\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n');
  t.equal(script.left, true);
});

t.test('a head whose first item is there at once leaves together with it', async (t) => {
  async function* body() {
    yield 'first';
    await new Promise(() => {});
  }
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: body() }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  await once(client.socket, 'data');
  t.match(client.received, /\r\n\r\n5\r\nfirst\r\n$/);
});

t.test('an old caller gets a stream that ends with the connection', async (t) => {
  async function* body() {
    yield 'one ';
    yield 'two';
  }
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: body() }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.0', '', '');
  t.equal(replyOf(await client.ended()).body, 'one two');
});

t.test('C-101 a stream that is silent writes its keep-alive text, and nothing while there is something to say', async (t) => {
  const clock = new ManualClock();
  const script = new Script();
  const keepAlive = { every: 15_000, text: ': waiting\n\n' };
  const { port } = await serve(t, {
    routes: [get('/v1/stream', () => ({ status: 200, headers: EVENTS, body: script, keepAlive }))],
    clock,
  });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  await client.until(/\r\n\r\n/);
  clock.advance(14_999);
  script.say('one');
  await client.until(/one\r\n$/);
  clock.advance(14_999);
  clock.advance(1);
  await client.until(/waiting\n\n\r\n$/);
  clock.advance(15_000);
  script.say('two');
  script.say(undefined);
  const received = await client.until(/0\r\n\r\n$/);
  t.same(received.match(/one|two|waiting/g), ['one', 'waiting', 'waiting', 'two']);
  t.equal(clock.pending, 0);
});

t.test('C-109 a stream that breaks is cut off: the caller sees that it is not whole', async (t) => {
  const script = new Script();
  const served = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: script }))] });
  const reply = await fetch(`${served.url}/v1/stream`);
  script.say('some');
  script.say(new Error('the model broke'));
  await t.rejects(reply.text());
  await served.stop();
  t.match(served.requests(), [{ status: 200, outcome: 'agent_error' }]);
  t.match(
    served.logs.find(({ level }) => level === 'error'),
    { err: { message: 'the model broke' }, msg: 'the body of a reply broke off', request_id: /^req_/ },
  );
});

t.test('C-010 a caller that leaves aborts the work, and leaves its stream', async (t) => {
  const script = new Script();
  let signal: AbortSignal | undefined;
  const served = await serve(t, {
    routes: [
      get('/v1/stream', (request) => {
        signal = request.signal;
        return { status: 200, body: script };
      }),
    ],
  });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  script.say('some');
  await client.until(/some/);
  t.equal(signal?.aborted, false);
  client.socket.destroy();
  await once(signal as AbortSignal, 'abort');
  t.equal(signal?.reason.message, 'the caller has gone');
  while (!script.left) await turn();
  await served.stop();
  t.match(served.requests(), [{ status: 499, outcome: 'cancelled_by_client', route: '/v1/stream' }]);
  t.equal(served.logs.filter(({ level }) => level === 'error').length, 0);
});

t.test('C-010 the same before there is a reply, whole or streamed, which is then dropped', async (t) => {
  const script = new Script();
  const replies: Record<string, object> = { whole: { text: 'late' }, streamed: script };
  const served = await serve(t, {
    routes: [
      get('/v1/late/:kind', async ({ signal, params }) => {
        await once(signal, 'abort');
        return { status: 200, body: replies[String(params.kind)] as object };
      }),
    ],
  });
  for (const kind of ['whole', 'streamed']) {
    const client = await RawClient.open(served.port);
    client.send(`GET /v1/late/${kind} HTTP/1.1`, 'Host: x', '', '');
    await turn();
    client.socket.destroy();
  }
  while (!script.left) await turn();
  t.equal(script.pulled, 0);
  await served.stop();
  t.match(served.requests(), [{ outcome: 'cancelled_by_client' }, { outcome: 'cancelled_by_client' }]);
});

t.test('what breaks because the caller has gone is no error', async (t) => {
  const served = await serve(t, {
    routes: [
      get('/v1/stream', ({ signal }) => {
        async function* body() {
          yield 'some';
          await once(signal, 'abort');
          throw signal.reason;
        }
        return { status: 200, body: body() };
      }),
    ],
  });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  await client.until(/some/);
  client.socket.destroy();
  await served.stop();
  await turn();
  t.match(served.requests(), [{ status: 499 }]);
  t.same(
    served.logs.filter(({ level }) => level === 'error'),
    [],
  );
  t.match(
    served.logs.find(({ level }) => level === 'debug'),
    { msg: 'the body of a reply broke off' },
  );
});

t.test('C-011 a caller that closes right after the end has not left', async (t) => {
  let signal: AbortSignal | undefined;
  const served = await serve(t, {
    routes: [
      get('/v1/stream', (request) => {
        signal = request.signal;
        async function* body() {
          yield 'data: 1\n\n';
          await turn();
          yield 'data: [DONE]\n\n';
        }
        return { status: 200, headers: EVENTS, body: body() };
      }),
    ],
  });
  for (let n = 0; n < 20; n++) {
    const client = await RawClient.open(served.port);
    client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
    await client.until(/\[DONE\]/);
    client.socket.resetAndDestroy();
  }
  await served.stop();
  t.equal(signal?.aborted, false);
  t.same(new Set(served.requests().map(({ status, outcome }) => `${status} ${outcome}`)), new Set(['200 ok']));
});

t.test('R-010 a reader that stops reading stops the source, and is cut after 30 seconds', async (t) => {
  const clock = new ManualClock();
  let written = 0;
  let left = false;
  async function* endless() {
    try {
      for (;;) {
        written += 65_536;
        yield 'x'.repeat(65_536);
      }
    } finally {
      left = true;
    }
  }
  const served = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: endless() }))], clock });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: x', '', '');
  await client.until(/x/);
  client.socket.pause();
  while (clock.pending === 0) await turn();
  for (let before = -1; before !== written; await turn()) before = written;
  const stalledAt = written;
  clock.advance(29_999);
  await turn();
  t.equal(left, false);
  t.equal(written, stalledAt);
  clock.advance(1);
  while (!left) await turn();
  await served.stop();
  t.match(served.requests(), [{ status: 200, outcome: 'timeout' }]);
  t.equal(clock.pending, 0);
});

t.test('R-010 a reader that reads again gets all of it', async (t) => {
  const clock = new ManualClock();
  async function* large() {
    for (let n = 0; n < 200; n++) yield String(n % 10).repeat(65_536);
  }
  const keepAlive = { every: 15_000, text: ': not while it waits for room' };
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: large(), keepAlive }))], clock });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.0', '', '');
  await client.until(/0/);
  client.socket.pause();
  while (clock.pending < 2) await turn();
  clock.advance(20_000);
  client.socket.resume();
  const { body } = replyOf(await client.ended());
  t.equal(body.length, 200 * 65_536);
  t.notMatch(body, /room/);
  t.equal(clock.pending, 0);
});

t.test('R-012 a whole reply that nobody reads is cut after 30 seconds too', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { routes: [get('/v1/large', () => ({ status: 200, body: 'x'.repeat(30_000_000) }))], clock });
  const client = await RawClient.open(served.port);
  client.socket.pause();
  client.send('GET /v1/large HTTP/1.1', 'Host: x', '', '');
  while (clock.pending === 0) await turn();
  clock.advance(30_000);
  await served.stop();
  t.match(served.requests(), [{ status: 200, outcome: 'timeout' }]);
});

t.test('a small reply sets no timer', async (t) => {
  const clock = new ManualClock();
  const { url } = await serve(t, { routes: [get('/v1/small', () => ({ status: 200, body: { a: 1 } }))], clock });
  await (await fetch(`${url}/v1/small`)).text();
  t.equal(clock.pending, 0);
});

t.test('a GET that comes with a body is answered without it', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', ({ rawBody }) => ({ status: 200, body: { rawBody } }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/x HTTP/1.1', 'Host: x', 'Content-Length: 100', '', 'abc');
  const { status, body, headers } = replyOf(await client.ended());
  t.equal(status, 200);
  t.equal(body, '{"rawBody":""}');
  t.equal(headers.connection, 'close');
});

t.test('a reply without a body reaches a caller that is still sending one', async (t) => {
  const { port } = await serve(t, { routes: [get('/v1/x', () => ({ status: 200, body: { a: 1 } }))] });
  for (const [method, status] of [
    ['HEAD', 200],
    ['OPTIONS', 204],
  ] as const) {
    const client = await RawClient.open(port);
    client.send(`${method} /v1/x HTTP/1.1`, 'Host: x', 'Content-Length: 100', '', 'abc');
    const reply = replyOf(await client.ended());
    t.equal(reply.status, status);
    t.equal(reply.body, '');
  }
});

t.test('the access log has one line for each request, with what its route noted', async (t) => {
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
      get('/v1/failed', (request) => {
        request.note({ outcome: 'agent_error' });
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
