import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { RawClient } from '../../../plugins/transport-http/test/support/raw-client.js';
import { rawExchange, wholeReply } from '../../support/raw-exchange.js';
import { startWithAllRoutes, TOKEN, tokenFor } from '../support/all-routes.js';
import { everyRoute, NO_BODY } from '../support/every-route.js';
import { type Pair, sendRaw } from '../support/send-raw.js';

const UPGRADES: Readonly<Record<string, readonly Pair[]>> = {
  websocket: [
    ['connection', 'Upgrade'],
    ['upgrade', 'websocket'],
    ['sec-websocket-version', '13'],
    ['sec-websocket-key', 'AAAAAAAAAAAAAAAAAAAAAA=='],
  ],
  h2c: [
    ['connection', 'Upgrade, HTTP2-Settings'],
    ['upgrade', 'h2c'],
    ['http2-settings', 'AAMAAABkAARAAAAAAAIAAAAA'],
  ],
  nothing: [
    ['connection', 'Upgrade'],
    ['upgrade', 'x'],
  ],
};
const lines = (pairs: readonly Pair[]) => pairs.map(([name, value]) => `${name}: ${value}`);
const websocket = lines(UPGRADES.websocket ?? []);

const server = await startWithAllRoutes(t);
const open = await startWithAllRoutes(t, { auth: '' });

t.test('S-26 a request for an upgrade is authorized and answered like any other', async (t) => {
  for (const call of everyRoute(server)) {
    for (const token of [undefined, tokenFor('admin'), TOKEN]) {
      const credential: readonly Pair[] = token === undefined ? [] : [['authorization', `Bearer ${token}`]];
      const plain = await sendRaw(server, call, credential);
      for (const [protocol, headers] of Object.entries(UPGRADES)) {
        const upgraded = await sendRaw(server, call, [...headers, ...credential]);
        t.same([upgraded.status, upgraded.text], [plain.status, plain.text], `${protocol}: ${call.route}`);
      }
    }
  }
});

t.test('S-08 S-09 an open server refuses upgrades with a foreign Origin or Host with 403', async (t) => {
  for (const { method, path, route, access, takesJson } of everyRoute(open)) {
    if (method === 'HEAD') continue; // its answer has no body to read
    const body = takesJson ? NO_BODY : '';
    for (const [host, origin, code] of [
      ['localhost', 'https://evil.example', 'origin_not_allowed'],
      ['localhost', 'null', 'origin_not_allowed'],
      ['localhost', `http://localhost:${open.port + 1}`, 'origin_not_allowed'],
      ['evil.example', 'https://evil.example', access === 'public' ? undefined : 'host_not_allowed'],
    ] as const) {
      if (code === undefined) continue; // probes may come under any name
      const head = [
        `${method} ${path} HTTP/1.1`,
        `Host: ${host}`,
        `Origin: ${origin}`,
        ...websocket,
        `Content-Length: ${body.length}`,
      ];
      const reply = await rawExchange(open.port, ...head, '', body);
      t.equal(reply.status, 403, `${route} ${origin}`);
      const { error } = JSON.parse(reply.body);
      t.equal(error.code ?? error.details.error_code, code, `${route} ${origin}`);
    }
  }
});

t.test('S-17 1,000 upgrades without a token get identical 401 responses', async (t) => {
  const statuses = new Map<number, number>();
  for (let hundred = 0; hundred < 10; hundred++) {
    const clients = await Promise.all(Array.from({ length: 100 }, () => RawClient.open(server.port)));
    const replies = clients.map((client) => {
      client.send('GET /v1/models HTTP/1.1', 'Host: localhost', ...websocket, '', '');
      return wholeReply(client);
    });
    for (const { status } of await Promise.all(replies)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    for (const { socket } of clients) socket.destroy();
  }
  t.same([...statuses], [[401, 1_000]]);
});

t.test('S-22 an upgrade with thousands of headers or a huge list of protocols gets a 431, and the server survives', async (t) => {
  const many = Array.from({ length: 2_100 }, (_, at) => `x${at}: y`);
  for (const headers of [
    many,
    [`Sec-WebSocket-Protocol: ${'a'.repeat(100_000)}`],
    [`Sec-WebSocket-Protocol: ${'a,'.repeat(50_000)}`],
    [`Sec-WebSocket-Extensions: ${'permessage-deflate; '.repeat(5_000)}`],
  ]) {
    const reply = await rawExchange(server.port, 'GET /v1/models HTTP/1.1', 'Host: localhost', ...websocket, ...headers, '', '');
    t.match([reply.status, JSON.parse(reply.body).error.code], [431, 'headers_too_large']);
  }
  for (const value of [' \t,'.repeat(3_000), `${' '.repeat(100_000)}x`, `x${' '.repeat(15_000)}x`]) {
    const header = `Sec-WebSocket-Protocol: ${value}`;
    const reply = await rawExchange(server.port, 'GET /v1/models HTTP/1.1', 'Host: localhost', ...websocket, header, '', '');
    t.equal(reply.status, 401);
  }
  t.match((await server.get('/health')).body, { ready: true });
});

t.test('S-25 no shipped code opens a WebSocket as a client', async (t) => {
  const root = join(import.meta.dirname, '../../..');
  const sources = globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root });
  t.ok(sources.length > 100);
  t.strictSame(
    sources.filter((path) => /\bnew WebSocket\(/.test(readFileSync(join(root, path), 'utf8'))),
    [],
  );
});
