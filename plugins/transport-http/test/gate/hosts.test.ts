import type { AuthProvider } from '@plugboard/kernel';
import t from 'tap';
import { parseHost } from '../../src/gate/host-name.js';
import { ask } from '../support/ask.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const routes = [get('/v1/thing', () => ({ status: 200, body: {} })), get('/probe', () => ({ status: 200, body: {} }), 'public')];
const noMatch: AuthProvider = { authenticate: () => undefined };

const REFUSAL = { code: 'host_not_allowed' };

t.test('S-23 a Host is a name or address with an optional port', async (t) => {
  for (const [header, name, port] of [
    ['localhost', 'localhost', ''],
    ['LocalHost:8080', 'localhost', '8080'],
    ['127.0.0.1:1', '127.0.0.1', '1'],
    ['my_service.internal', 'my_service.internal', ''],
    ['[::1]:65535', '::1', '65535'],
    ['[2001:DB8::1]', '2001:db8::1', ''],
    ['', '', ''],
    [':80', '', '80'],
    ['name:', 'name', ''],
  ] as const) {
    t.strictSame(parseHost(header), { name, port }, header);
  }
  const malformed = [
    'a@evil.example',
    'localhost:80@evil.example',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'a\\b',
    'a,b',
    'a%41',
    '[::1',
    '::1',
    '[1]',
    '[::g]',
  ];
  for (const header of [...malformed, '[::1%25eth0]', 'a:b', 'a:1:2', 'a:65536', 'a:123456', 'ä'])
    t.equal(parseHost(header), undefined, header);
});

t.test('S-23 a malformed Host gets 400 on every route', async (t) => {
  for (const providers of [[], [noMatch]]) {
    const { url } = await serve(t, { routes, providers });
    for (const path of ['/v1/thing', '/probe', '/nowhere']) {
      const { status, error } = await ask(url + path, { headers: { host: 'a@evil.com' } });
      t.equal(status, 400, path);
      t.match(error, { code: null, message: /Host/ });
    }
  }
});

t.test('two Host headers get 400 even if both are allowed', async (t) => {
  const { port } = await serve(t, { routes });
  const client = await RawClient.open(port);
  client.send('GET /v1/thing HTTP/1.1', 'Host: localhost', 'host: localhost', 'Connection: close', '', '');
  t.equal(replyOf(await client.ended()).status, 400);
});

t.test('S-09 an open server on loopback accepts loopback names and listed hosts', async (t) => {
  const config = { hosts: ['Agents.Example', 'one.example:8080', '[fd00::1]'] };
  const { url } = await serve(t, { routes, config });
  const allowed = ['localhost', 'localhost:1234', 'LOCALHOST', '127.0.0.1', '127.0.0.1:9', '127.1.2.3', '[::1]', '[::1]:99'];
  for (const host of [...allowed, 'agents.example', 'agents.example:1', 'one.example:8080', '[fd00::1]:80']) {
    t.equal((await ask(`${url}/v1/thing`, { headers: { host } })).status, 200, host);
  }
  const foreign = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil-localhost',
    '192.168.0.1',
    '[::2]',
    '0.0.0.0',
  ];
  for (const host of [...foreign, 'one.example', 'one.example:80']) {
    const { status, error } = await ask(`${url}/v1/thing`, { headers: { host } });
    t.equal(status, 403, host);
    t.match(error, REFUSAL);
  }
});

t.test('S-09 an empty Host is refused; HTTP/1.0 may omit it', async (t) => {
  const { port } = await serve(t, { routes });
  for (const [status, lines] of [
    [403, ['Host:']],
    [200, []],
    [403, ['Origin: https://evil.example']],
  ] as const) {
    const client = await RawClient.open(port);
    client.send('GET /v1/thing HTTP/1.0', ...lines, '', '');
    t.equal(replyOf(await client.ended()).status, status);
  }
});

t.test('S-09 an unknown Host is refused on every route except probes', async (t) => {
  const { url } = await serve(t, { routes });
  const headers = { host: 'evil.example' };
  for (const [path, method] of [
    ['/v1/thing', 'GET'],
    ['/v1/thing', 'DELETE'],
    ['/v1/thing', 'OPTIONS'],
    ['/v1/nowhere', 'GET'],
    ['/nowhere', 'GET'],
  ] as const) {
    t.equal((await ask(url + path, { method, headers })).status, 403, `${method} ${path}`);
  }
  t.equal((await ask(`${url}/probe`, { headers })).status, 200);
});

t.test('a refused Host is named in the access and audit logs', async (t) => {
  const { url, logs, stop } = await serve(t, { routes });
  await ask(`${url}/v1/thing`, { headers: { host: 'evil.example' } });
  await stop();
  const facts = { route: '/v1/thing', refused: 'the Host evil.example', error_code: 'host_not_allowed', address: '127.0.0.1' };
  t.match(
    logs.filter(({ msg }) => msg === 'request'),
    [{ status: 403, ...facts }],
  );
  t.match(
    logs.filter(({ event }) => event === 'forbidden'),
    [{ log: 'audit', ...facts }],
  );
});

t.test('an open server on another address accepts every Host unless hosts is set', async (t) => {
  const any = await serve(t, { routes, config: { host: '0.0.0.0' } });
  t.equal((await ask(`${any.url}/v1/thing`, { headers: { host: 'whatever.example' } })).status, 200);
  const some = await serve(t, { routes, config: { host: '0.0.0.0', hosts: ['agents.example'] } });
  for (const [host, status] of [
    ['agents.example', 200],
    ['localhost', 200],
    ['whatever.example', 403],
  ] as const) {
    t.equal((await ask(`${some.url}/v1/thing`, { headers: { host } })).status, status, host);
  }
});

t.test('a server that requires credentials accepts every Host', async (t) => {
  const { url } = await serve(t, { routes, providers: [noMatch], config: { hosts: ['agents.example'] } });
  t.equal((await ask(`${url}/v1/thing`, { headers: { host: 'whatever.example' } })).status, 401);
});

t.test('S-09 a page needs no credential, but its Host is checked where the server is open', async (t) => {
  const page = get('/page', () => ({ status: 200, body: {} }), 'page');
  const open = await serve(t, { routes: [page] });
  const foreign = { headers: { host: 'evil.example' } };
  t.equal((await ask(`${open.url}/page`)).status, 200);
  const refused = await ask(`${open.url}/page`, foreign);
  t.equal(refused.status, 403);
  const closed = await serve(t, { routes: [page], providers: [noMatch] });
  t.equal((await ask(`${closed.url}/page`, foreign)).status, 200);
});
