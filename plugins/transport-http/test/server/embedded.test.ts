import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type AuthProvider, AuthProviders, Transports } from '@plugboard/kernel';
import { eventually, ManualClock, startServer, testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin, {
  type HttpHandler,
  HttpHandlers,
  type HttpRoute,
  HttpRoutes,
  type HttpUpgrade,
  HttpUpgrades,
} from '../../src/index.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get, postJson } from '../support/routes.js';

interface Options {
  readonly routes?: readonly HttpRoute[];
  readonly upgrades?: readonly HttpUpgrade[];
  readonly providers?: readonly AuthProvider[];
  readonly config?: object;
  /** Whether it is started. */
  readonly started?: boolean;
  /** The server of the embedding program. By default it passes everything on. */
  readonly outer?: (handler: HttpHandler) => RequestListener;
}

/**
 * The plugin with `listen: false`, behind a plain server of Node.js that keeps listening until the
 * test is over.
 */
async function embed(
  t: Test,
  { routes = [], upgrades = [], providers = [], config, started = true, outer = ({ request }) => request }: Options = {},
) {
  const ctx = testContext(plugin, {
    config: { listen: false, ...config },
    entry: 'transports.http',
    clock: new ManualClock(),
    check: { literal: () => undefined, entries: () => providers.map((_, at) => String(at)) },
  });
  for (const route of routes) ctx.provide(HttpRoutes, route, 'routes');
  for (const upgrade of upgrades) ctx.provide(HttpUpgrades, upgrade, 'upgrades');
  for (const provider of providers) ctx.provide(AuthProviders, provider, 'provider');
  if (started) await ctx.lifecycle.start?.(new AbortController().signal);
  const handler = ctx.contributed(HttpHandlers);
  const web = createServer(outer(handler)).on('upgrade', handler.upgrade);
  await once(web.listen(0, '127.0.0.1'), 'listening');
  const stop = async (signal = new AbortController().signal) => ctx.lifecycle.stop?.(signal);
  t.teardown(async () => {
    await stop(AbortSignal.abort()).catch(() => {});
    web.close();
    web.closeAllConnections();
  });
  const { port } = web.address() as AddressInfo;
  return { ctx, handler, port, url: `http://127.0.0.1:${port}`, stop, web };
}

/** A WebSocket request, as bytes. */
const upgradeOf = (path: string, method = 'GET') => [
  `${method} ${path} HTTP/1.1`,
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  '',
  '',
];

/** An upgrade whose owner writes a line, and then what it receives. */
function echoingUpgrade(): { readonly upgrade: HttpUpgrade; readonly sockets: Socket[] } {
  const sockets: Socket[] = [];
  return {
    sockets,
    upgrade: {
      path: '/v1/live',
      access: [],
      handle(request) {
        const { socket } = request.accept();
        sockets.push(socket);
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
        request.draining.addEventListener('abort', () => socket.end('bye'));
      },
    },
  };
}

t.test('with `listen: false` there is no address, and a handler; else there is none', async (t) => {
  const { ctx } = await embed(t);
  t.equal(ctx.contributed(Transports).address(), undefined);
  t.notOk(ctx.logs.some(({ msg }) => msg === 'listening'));
  const listening = testContext(plugin, { config: { port: 0 }, entry: 'transports.http' });
  t.throws(() => listening.contributed(HttpHandlers), /did not contribute/);
});

t.test('a handler serves routes, with ids, checks and the access log', async (t) => {
  const provider: AuthProvider = {
    authenticate: ({ bearer }) =>
      bearer === 'ci' ? { principal: { project: 'acme', tokenId: 'tok_1', scopes: [] } } : undefined,
  };
  const { url, ctx } = await embed(t, { routes: [echo()], providers: [provider] });
  const said = await postJson(`${url}/v1/echo`, '{"a":1}', { authorization: 'Bearer ci' });
  t.equal(said.status, 200);
  t.strictSame(await said.json(), { a: 1 });
  t.match(said.headers.get('x-request-id'), /^req_/);
  t.equal((await postJson(`${url}/v1/echo`, '{"a":1}')).status, 401);
  t.equal((await postJson(`${url}/v1/echo`, '[]', { authorization: 'Bearer ci' })).status, 400);
  t.equal((await fetch(`${url}/nowhere`)).status, 404);
  await eventually(() => ctx.logs.filter(({ msg }) => msg === 'request').length >= 3);
});

t.test('S-09 an open embedded server accepts loopback names only, whatever its server listens on', async (t) => {
  const { port } = await embed(t, { routes: [get('/v1/x', () => ({ status: 200, body: {} }))], config: { host: '0.0.0.0' } });
  for (const [host, status] of [
    ['evil.example', 403],
    ['localhost', 200],
  ] as const) {
    const client = await RawClient.open(port);
    client.send('GET /v1/x HTTP/1.1', `Host: ${host}`, 'Connection: close', '', '');
    t.equal(replyOf(await client.ended()).status, status, host);
  }
});

t.test('before the start and after the stop every request and upgrade is a 503', async (t) => {
  const { upgrade } = echoingUpgrade();
  const { ctx, url, port, stop } = await embed(t, { routes: [echo()], upgrades: [upgrade], started: false });
  const refused = async () => {
    const reply = await postJson(`${url}/v1/echo`, '{}');
    const client = await RawClient.open(port);
    client.send(...upgradeOf('/v1/live'));
    t.equal(replyOf(await client.ended()).status, 503);
    return [reply.status, reply.headers.get('connection'), (await errorOf(reply)).message];
  };
  t.strictSame(await refused(), [503, 'close', 'The server is starting. Try again in a few seconds.']);
  await ctx.lifecycle.start?.(new AbortController().signal);
  t.equal((await postJson(`${url}/v1/echo`, '{}')).status, 200);
  await stop();
  t.match(await refused(), [503, 'close', /^The server is shutting down/]);
});

t.test('R-060 a stop waits for running replies, refuses new work, and lets WebSockets go', async (t) => {
  const last = Promise.withResolvers<string>();
  async function* body() {
    yield 'some ';
    yield await last.promise;
  }
  const { upgrade } = echoingUpgrade();
  const routes = [get('/v1/stream', () => ({ status: 200, body: body() })), echo()];
  const { url, port, stop, web } = await embed(t, { routes, upgrades: [upgrade] });
  const running = await fetch(`${url}/v1/stream`);
  const live = await RawClient.open(port);
  live.send(...upgradeOf('/v1/live'));
  await eventually(() => live.received.includes('101'));

  let hasStopped = false;
  const stopped = stop().then(() => {
    hasStopped = true;
  });
  t.match(await live.ended(), /bye$/);
  const refused = await postJson(`${url}/v1/echo`, '{}');
  t.equal(refused.status, 503);
  t.match(await errorOf(refused), { code: 'draining' });
  const late = await RawClient.open(port);
  late.send(...upgradeOf('/v1/live'));
  t.equal(replyOf(await late.ended()).status, 503);
  t.notOk(hasStopped);
  last.resolve('more');
  t.equal(await running.text(), 'some more');
  await stopped;
  t.ok(web.listening, 'the server of the program is its own');
});

t.test('a request or upgrade that is handed over twice is served once, and the log says so', async (t) => {
  let ran = 0;
  const route = get('/v1/count', () => ({ status: 200, body: { ran: ++ran } }));
  const { upgrade, sockets } = echoingUpgrade();
  const outer = ({ request }: HttpHandler): RequestListener => {
    return (req, res) => {
      request(req, res);
      request(req, res);
    };
  };
  const { ctx, url, port, web, handler } = await embed(t, { routes: [route], upgrades: [upgrade], outer });
  web.on('upgrade', handler.upgrade);
  t.strictSame(await (await fetch(`${url}/v1/count`)).json(), { ran: 1 });
  const live = await RawClient.open(port);
  live.send(...upgradeOf('/v1/live'));
  await eventually(() => sockets.length === 1);
  t.equal(ran, 1);
  const twice = ctx.logs.filter(({ msg }) => String(msg).includes('handed over twice'));
  t.strictSame(
    twice.map(({ level, method }) => [level, method]),
    [
      ['error', 'GET'],
      ['error', 'GET'],
    ],
  );
});

t.test('a body that was read before is a 500 that the log explains', async (t) => {
  const outer = ({ request }: HttpHandler): RequestListener => {
    return async (req, res) => {
      for await (const _ of req);
      request(req, res);
    };
  };
  const { ctx, url } = await embed(t, { routes: [echo(), get('/v1/x', () => ({ status: 200, body: {} }))], outer });
  t.equal((await postJson(`${url}/v1/echo`, '{}')).status, 500);
  await eventually(() => ctx.logs.some(({ err }) => (err as Error | undefined)?.message.includes('before body parsers')));
  t.equal((await fetch(`${url}/v1/x`)).status, 200, 'a request without a body is served');
});

t.test('S-47 the connections of its requests are limited', async (t) => {
  const { port } = await embed(t, {
    routes: [get('/v1/x', () => ({ status: 200, body: {} }))],
    config: { maxConnectionsPerAddress: 2 },
  });
  const ask = async () => {
    const client = await RawClient.open(port);
    client.send('GET /v1/x HTTP/1.1', 'Host: localhost', '', '');
    await eventually(() => client.received.includes('\r\n\r\n'));
    return client;
  };
  const kept = [await ask(), await ask()];
  for (const client of kept) t.match(client.received, /^HTTP\/1.1 200/);
  t.match((await ask()).received, /^HTTP\/1.1 503/);
});

t.test('S-33 an upgraded connection that is reset does no harm', async (t) => {
  const { upgrade, sockets } = echoingUpgrade();
  const { port, url } = await embed(t, { routes: [get('/v1/x', () => ({ status: 200, body: {} }))], upgrades: [upgrade] });
  const live = await RawClient.open(port);
  live.send(...upgradeOf('/v1/live'));
  await eventually(() => sockets.length === 1);
  live.socket.resetAndDestroy();
  await eventually(() => sockets[0]?.destroyed === true);
  t.equal((await fetch(`${url}/v1/x`)).status, 200);
});

t.test('an upgrade that no route offers is a 404', async (t) => {
  const { port } = await embed(t, { routes: [echo()], upgrades: [echoingUpgrade().upgrade] });
  for (const lines of [upgradeOf('/v1/nowhere'), upgradeOf('/v1/echo', 'POST'), upgradeOf('/v1/live', 'POST')]) {
    const client = await RawClient.open(port);
    client.send(...lines);
    t.equal(replyOf(await client.ended()).status, 404, String(lines[0]));
  }
});

t.test('two entries without a port are a mistake that names both', async (t) => {
  const transports = { http: { listen: false }, other: { use: 'http', listen: false }, 'chat-completions': {} };
  const failure = await startServer({ transports, models: { demo: {} }, agents: { a: { model: 'demo' } } }).catch(
    (error) => error,
  );
  t.match(String(failure.message), /transports\.http/);
  t.match(String(failure.message), /transports\.other/);
});
