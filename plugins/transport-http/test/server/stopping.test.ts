import { once } from 'node:events';
import { connect } from 'node:net';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get, mute, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A route whose stream writes `some`, and then what the test sends. */
function scripted() {
  let finish: (last: string) => void = () => {};
  const last = new Promise<string>((resolve) => {
    finish = resolve;
  });
  async function* body() {
    yield 'some ';
    yield await last;
  }
  return { route: get('/v1/stream', () => ({ status: 200, body: body() })), finish };
}

t.test('C-170 R-060 a stopping server finishes running requests, refuses new work and serves read-only routes', async (t) => {
  const { route, finish } = scripted();
  const served = await serve(t, {
    routes: [route, echo(), get('/health', () => ({ status: 200, body: { ok: true } }), 'public')],
  });
  const running = await fetch(`${served.url}/v1/stream`);
  const stopped = served.stop();

  const refused = await postJson(`${served.url}/v1/echo`, '{}');
  t.equal(refused.status, 503);
  t.equal(refused.headers.get('connection'), 'close');
  t.equal(refused.headers.get('retry-after'), '5');
  t.same(await errorOf(refused), {
    message: 'The server is shutting down and accepts no new requests. Try again in a few seconds.',

    code: 'draining',
  });
  const looked = await fetch(`${served.url}/health`);
  t.equal(looked.status, 200);
  t.equal(looked.headers.get('connection'), 'close');

  finish('more');
  t.equal(await running.text(), 'some more');
  await stopped;
  await t.rejects(fetch(`${served.url}/health`));
  t.match(served.requests(), [
    { status: 503, outcome: 'draining' }, // and within the same second no line of /health from the same address
    { status: 200, outcome: 'ok', route: '/v1/stream' },
  ]);
});

t.test('a stopping server refuses new work before authentication', async (t) => {
  const { route, finish } = scripted();
  const served = await serve(t, {
    routes: [{ ...route, access: 'public', path: '/stream' }, echo()],
    providers: [{ authenticate: () => ({ refused: 'no' }) }],
  });
  const running = await fetch(`${served.url}/stream`);
  const stopped = served.stop();
  t.equal((await postJson(`${served.url}/v1/echo`, '{}')).status, 503);
  t.equal((await postJson(`${served.url}/v1/nowhere`, '{}')).status, 401);
  finish('');
  await running.text();
  await stopped;
});

t.test('R-062 idle connections are closed at once, busy ones after their reply', async (t) => {
  const { route, finish } = scripted();
  const served = await serve(t, { routes: [route, echo()] });
  const idle = await RawClient.open(served.port);
  idle.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 2', '', '{}');
  await idle.until(/\{\}$/);
  const busy = await RawClient.open(served.port);
  busy.send('GET /v1/stream HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await busy.until(/some/);
  const silent = await RawClient.open(served.port);

  const stopped = served.stop();
  await idle.ended();
  t.equal(busy.socket.readableEnded, false);
  finish('more');
  t.match(await busy.ended(), /more\r\n0\r\n\r\n$/);
  await silent.ended();
  await stopped;
});

t.test('R-061 requests still running after the drain time are cancelled and may send an error', async (t) => {
  const clock = new ManualClock();
  let reason: unknown;
  const route = get('/v1/stream', ({ signal }) => {
    async function* body() {
      yield 'some ';
      await once(signal, 'abort');
      reason = signal.reason;
      yield 'cut short';
    }
    return { status: 200, body: body() };
  });
  const served = await serve(t, { routes: [route], clock, config: { drain: '20s' } });
  const running = await fetch(`${served.url}/v1/stream`);
  const stopped = t.rejects(served.stop(), {
    message: '1 reply was still running after 20 s (`drain` of transports.http) and had to be aborted',
  });
  clock.advance(19_999);
  await turn();
  t.equal(reason, undefined);
  clock.advance(1);
  t.equal(await running.text(), 'some cut short');
  t.match(reason, { code: 'stopped', message: 'The server stopped before the answer was complete.' });
  await stopped;
  t.match(served.requests(), [{ status: 200, outcome: 'ok' }]);
});

t.test('R-061 replies have as long as turns, unless the entry says how long', async (t) => {
  const runtime = { drainLimit: 60_000 } as AgentRuntime;
  t.equal((await serve(t, { routes: [], runtime })).lifecycle.stopLimit, 65_000);
  t.equal((await serve(t, { routes: [], runtime, config: { drain: '1s' } })).lifecycle.stopLimit, 6_000);
  t.equal((await serve(t, { routes: [] })).lifecycle.stopLimit, 35_000);
});

t.test('R-061 requests that ignore the cancellation are aborted four seconds later', async (t) => {
  const clock = new ManualClock();
  const { route, asked } = mute();
  async function* body() {
    yield 'some';
    await new Promise(() => {});
  }
  const served = await serve(t, {
    routes: [get('/v1/stream', () => ({ status: 200, body: body() })), route],
    clock,
  });
  t.equal(served.lifecycle.stopLimit, 35_000);
  const running = await fetch(`${served.url}/v1/stream`);
  const client = await RawClient.open(served.port);
  client.send('GET /v1/mute HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await asked;
  const stopped = t.rejects(served.stop(), {
    message: '2 replies were still running after 30 s (`limits.drain`) and had to be aborted',
  });
  clock.advance(30_000);
  await turn();
  clock.advance(3_999);
  await turn();
  t.equal(client.socket.destroyed, false);
  clock.advance(1);
  await stopped;
  await t.rejects(running.text());
  await client.ended();
  t.same(
    served.requests().map(({ outcome }) => outcome),
    ['draining', 'draining'],
  );
});

t.test('a stop past its time limit aborts at once', async (t) => {
  const { route, asked } = mute();
  const served = await serve(t, { routes: [route] });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/mute HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await asked;
  const over = new AbortController();
  const stopped = t.rejects(served.stop(over.signal), { message: /^1 reply was still running/ });
  await turn();
  over.abort();
  await stopped;
  await client.ended();
});

t.test('a stop does not wait for a body that is being discarded', async (t) => {
  const served = await serve(t, { routes: [echo()], config: { bodyLimit: '1kb' } });
  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 1000000', '', '{');
  await client.until(/\}\}$/);
  await served.stop();
  t.equal(replyOf(client.received).status, 413);
});

t.test('stop is idempotent and logs the number of disconnects', async (t) => {
  const { route, asked } = mute();
  const served = await serve(t, { routes: [route] });
  const client = connect(served.port, '127.0.0.1');
  await once(client, 'connect');
  client.write('GET /v1/mute HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await asked;
  client.resetAndDestroy();
  await eventually(() => served.requests().length > 0);
  await Promise.all([served.stop(), served.stop()]);
  await served.stop();
  t.match(
    served.logs.filter(({ msg }) => msg === 'stopped'),
    [{ disconnects: 1, aborted: 0 }],
  );
  t.equal(served.logs.filter(({ level }) => level === 'error').length, 0);
});
