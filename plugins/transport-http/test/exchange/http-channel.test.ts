import { tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { request } from 'node:http';
import type { AuthProvider } from '@plugboard/kernel';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import type { AcceptedUpgrade } from '../../src/index.js';
import { ask } from '../support/ask.js';
import { get, mute } from '../support/routes.js';
import { serve } from '../support/serve.js';

interface Published {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly route: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly logFields: Record<string, unknown>;
  readonly status?: number;
  readonly outcome?: string;
  readonly project?: string;
}

/** Subscribes to `plugboard.http` until the test is over. */
function subscribe(t: Test, onStart: (context: Published) => void = () => {}) {
  const channel = tracingChannel('plugboard.http');
  /** As they were at the start. */
  const started: Published[] = [];
  const ended: Published[] = [];
  const handlers = {
    start: (context: unknown) => {
      started.push({ ...(context as Published) });
      onStart(context as Published);
    },
    asyncEnd: (context: unknown) => void ended.push(context as Published),
    end: () => {},
    asyncStart: () => {},
    error: () => {},
  };
  channel.subscribe(handlers);
  t.teardown(() => channel.unsubscribe(handlers));
  return { started, ended };
}

const knows: AuthProvider = {
  authenticate: ({ bearer }) => (bearer === 'good' ? { principal: { project: 'acme', scopes: [] } } : undefined),
};
const routes = [get('/v1/things/:id', () => ({ status: 200, body: {} }))];

t.test('each request begins with its route and ends with its status, once', async (t) => {
  const { started, ended } = subscribe(t);
  const served = await serve(t, { routes, providers: [knows] });
  await ask(`${served.url}/v1/things/1?x=y`, { headers: { authorization: 'Bearer good', traceparent: 'abc' } });
  await ask(`${served.url}/v1/things/2`);
  await ask(`${served.url}/nowhere`);
  await ask(`${served.url}/v1/things/3`, { method: 'DELETE', headers: { authorization: 'Bearer good' } });
  await served.stop();
  t.match(started, [
    { method: 'GET', path: '/v1/things/1', route: '/v1/things/:id', headers: { traceparent: 'abc' } },
    { method: 'GET', path: '/v1/things/2', route: '/v1/things/:id' },
    { method: 'GET', path: '/nowhere', route: undefined },
    { method: 'DELETE', path: '/v1/things/3', route: undefined },
  ]);
  t.notOk(started.some((one) => 'status' in one));
  t.match(ended, [
    { status: 200, outcome: 'ok', project: 'acme' },
    { status: 401, outcome: 'client_error', project: undefined },
    { status: 404, outcome: 'client_error' },
    { status: 405, outcome: 'client_error', project: 'acme' },
  ]);
  t.strictSame(
    ended.map(({ requestId }) => requestId),
    started.map(({ requestId }) => requestId),
  );
});

t.test('what a subscriber adds to logFields at the start is in the log line of the request', async (t) => {
  subscribe(t, ({ logFields }) => Object.assign(logFields, { trace_id: 'abc' }));
  const served = await serve(t, { routes });
  await ask(`${served.url}/v1/things/1`);
  await served.stop();
  t.match(served.requests(), [{ route: '/v1/things/:id', trace_id: 'abc', outcome: 'ok' }]);
});

t.test('a request whose caller leaves ends without a status', async (t) => {
  const { ended } = subscribe(t);
  const { route, asked } = mute();
  const served = await serve(t, { routes: [route] });
  const sent = request(`${served.url}/v1/mute`);
  sent.on('error', () => {});
  sent.end();
  await asked;
  sent.destroy();
  await eventually(() => ended.length === 1);
  t.match(ended, [{ status: undefined, outcome: 'cancelled_by_client', project: 'default' }]);
});

t.test('an upgrade ends with 101 when it is accepted, and not again when its connection closes', async (t) => {
  const { ended } = subscribe(t, ({ logFields }) => Object.assign(logFields, { trace_id: 'abc' }));
  let accepted: AcceptedUpgrade | undefined;
  const upgrade = {
    path: '/v1/live',
    access: ['chat'] as const,
    handle: (asked: { accept(): AcceptedUpgrade }) => {
      accepted = asked.accept();
      accepted.socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    },
  };
  const served = await serve(t, { upgrades: [upgrade] });
  const sent = request(`${served.url}/v1/live`, { headers: { connection: 'upgrade', upgrade: 'websocket' } });
  sent.end();
  const [, socket] = await once(sent, 'upgrade');
  t.match(ended, [{ route: '/v1/live', status: 101, outcome: 'ok', project: 'default' }]);
  t.equal(served.requests().length, 0, 'the connection is open');
  socket.destroy();
  accepted?.socket.destroy();
  await served.stop();
  t.equal(ended.length, 1);
  t.match(served.requests(), [{ status: 101, trace_id: 'abc' }]);
});

t.test('a refused upgrade ends with its status', async (t) => {
  const { ended } = subscribe(t);
  const served = await serve(t, { upgrades: [{ path: '/v1/live', access: ['chat'], handle: () => {} }], providers: [knows] });
  const sent = request(`${served.url}/v1/live`, { headers: { connection: 'upgrade', upgrade: 'websocket' } });
  sent.end();
  const [response] = await once(sent, 'response');
  response.resume();
  await once(response, 'end');
  await served.stop();
  t.match(ended, [{ route: '/v1/live', status: 401 }]);
});
