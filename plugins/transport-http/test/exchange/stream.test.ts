import { once } from 'node:events';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A body that the test writes item by item; `left` is true once its reader has left. */
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

t.test('a streamed body is sent item by item, the head first', async (t) => {
  const script = new Script();
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, headers: EVENTS, body: script }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
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

t.test('the head is sent together with an item that is available at once', async (t) => {
  async function* body() {
    yield 'first';
    await new Promise(() => {});
  }
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: body() }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await once(client.socket, 'data');
  t.match(client.received, /\r\n\r\n5\r\nfirst\r\n$/);
});

t.test('an HTTP/1.0 caller gets a stream that ends with the connection', async (t) => {
  async function* body() {
    yield 'one ';
    yield 'é';
  }
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: body() }))] });
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.0', '', '');
  t.equal(Buffer.from(replyOf(await client.ended()).body, 'latin1').toString(), 'one é');
});

t.test('C-101 keep-alive text is written only while a stream is silent', async (t) => {
  const clock = new ManualClock();
  const script = new Script();
  const keepAlive = { every: 15_000, text: ': waiting\n\n' };
  const { port } = await serve(t, {
    routes: [get('/v1/stream', () => ({ status: 200, headers: EVENTS, body: script, keepAlive }))],
    clock,
  });
  const idle = clock.pending;
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
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
  t.equal(clock.pending, idle);
});

t.test('C-109 a failing stream destroys the connection, so the caller sees that it is incomplete', async (t) => {
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
    { err: { message: 'the model broke' }, msg: 'a streamed reply failed', request_id: /^req_/ },
  );
});

t.test('C-010 a disconnect aborts the signal and returns the iterator', async (t) => {
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
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
  script.say('some');
  await client.until(/some/);
  t.equal(signal?.aborted, false);
  client.socket.destroy();
  await once(signal as AbortSignal, 'abort');
  t.equal(signal?.reason.message, 'the caller disconnected');
  await eventually(() => script.left);
  await served.stop();
  t.match(served.requests(), [{ status: 499, outcome: 'cancelled_by_client', route: '/v1/stream' }]);
  t.equal(served.logs.filter(({ level }) => level === 'error').length, 0);
});

t.test('C-010 a disconnect before the reply aborts the signal and drops the reply', async (t) => {
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
    client.send(`GET /v1/late/${kind} HTTP/1.1`, 'Host: 127.0.0.1', '', '');
    await turn();
    client.socket.destroy();
  }
  await eventually(() => script.left);
  t.equal(script.pulled, 0);
  await served.stop();
  t.match(served.requests(), [{ outcome: 'cancelled_by_client' }, { outcome: 'cancelled_by_client' }]);
});

t.test('errors after a disconnect are not logged as errors', async (t) => {
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
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
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
    { msg: 'a streamed reply failed' },
  );
});

t.test('C-011 a caller that closes right after the end is not counted as disconnected', async (t) => {
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
    client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
    await client.until(/\[DONE\]/);
    client.socket.resetAndDestroy();
  }
  await served.stop();
  t.equal(signal?.aborted, false);
  t.same(new Set(served.requests().map(({ status, outcome }) => `${status} ${outcome}`)), new Set(['200 ok']));
});

t.test('R-010 a stalled reader stops the source and is disconnected after 30 seconds', async (t) => {
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
  const idle = clock.pending;
  const client = await RawClient.open(served.port);
  client.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await client.until(/x/);
  client.socket.pause();
  await eventually(() => clock.pending > idle);
  for (let before = -1; before !== written; await turn()) before = written;
  const stalledAt = written;
  clock.advance(29_999);
  await turn();
  t.equal(left, false);
  t.equal(written, stalledAt);
  clock.advance(1);
  await eventually(() => left);
  await served.stop();
  t.match(served.requests(), [{ status: 200, outcome: 'timeout' }]);
  t.equal(clock.pending, 0);
});

t.test('R-010 a reader that resumes gets the whole stream', async (t) => {
  const clock = new ManualClock();
  async function* large() {
    for (let n = 0; n < 200; n++) yield String(n % 10).repeat(65_536);
  }
  const keepAlive = { every: 15_000, text: ': not while it waits for room' };
  const { port } = await serve(t, { routes: [get('/v1/stream', () => ({ status: 200, body: large(), keepAlive }))], clock });
  const idle = clock.pending;
  const client = await RawClient.open(port);
  client.send('GET /v1/stream HTTP/1.0', '', '');
  await client.until(/0/);
  client.socket.pause();
  await eventually(() => clock.pending >= idle + 2);
  clock.advance(20_000);
  client.socket.resume();
  const { body } = replyOf(await client.ended());
  t.equal(body.length, 200 * 65_536);
  t.notMatch(body, /room/);
  t.equal(clock.pending, idle);
});
