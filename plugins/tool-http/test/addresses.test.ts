import type { lookup } from 'node:dns';
import { HostPolicy } from '@plugboard/kernel/contracts';
import { testToolCall } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { callOperation } from '../src/call-operation.js';
import { configSchema, type HttpConfig } from '../src/config.js';
import { loadOperations } from '../src/load-operations.js';
import { api, documentOf, entry, textOf } from './api.js';

/** A resolver with these names; each may have several answers, one after the other. */
function resolver(names: Readonly<Record<string, readonly string[]>>) {
  const asked: string[] = [];
  const resolve = ((host: string, _: object, callback: (error: Error | null, found: object[]) => void) => {
    const answers = names[host] ?? [];
    const address = answers[Math.min(asked.filter((one) => one === host).length, answers.length - 1)];
    asked.push(host);
    if (address === undefined) callback(Object.assign(new Error(`no ${host}`), { code: 'ENOTFOUND' }), []);
    else callback(null, [{ address, family: address.includes(':') ? 6 : 4 }]);
  }) as unknown as typeof lookup;
  return { resolve, asked };
}

/** Calls the server that the document names. */
function callTo(server: string, options: Partial<ConstructorParameters<typeof HostPolicy>[0]> = {}, headers = {}) {
  const defaults = { responseLimit: configSchema.properties.responseLimit.default, headers: {} };
  const config: HttpConfig = { openapi: 'shop.yaml', ...defaults, baseUrl: server };
  const text = JSON.stringify(documentOf({ '/a': { get: {}, post: {} } }));
  const { operations } = loadOperations(text, config, () => {});
  const [get, post] = operations;
  const addresses = new HostPolicy({ named: [], allowPrivate: [], ...options });
  const shared = { headers, addresses, responseLimit: 1e6, redact: (text: string) => text };
  const run = async (operation: typeof get) => {
    if (!operation) throw new Error('no operation');
    return textOf(await callOperation(operation, {}, testToolCall(), shared));
  };
  return { get: () => run(get), post: () => run(post) };
}

/** How 127.0.0.1 and other private addresses are written, with the port of a server on loopback. */
const WRITTEN = [
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '①②⑦.⓪.⓪.①',
  '[::1]',
  '[::ffff:7f00:1]',
  '[::ffff:127.0.0.1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '0.0.0.0',
  '0',
  '[::]',
  '10.0.0.7',
  '172.16.0.1',
  '192.168.1.1',
  '169.254.169.254',
  '[fd00:ec2::254]',
  '[fc00::1]',
  '[fe80::1]',
  '100.64.0.1',
  'localhost',
  'LOCALHOST',
  'shop.localhost',
];

t.test('OAS-8 S-07 no private address is connected to, however it is written', async (t) => {
  const { port, requests } = await api(t);
  for (const host of WRITTEN)
    await t.rejects(callTo(`http://${host}:${port}`).get(), { code: 'http_unreachable', message: /nothing was sent/ }, host);
  t.equal(requests.length, 0);
});

t.test('OAS-8 S-07 a name is checked by what it resolves to, once', async (t) => {
  const { port, requests } = await api(t);
  const names = {
    '127.0.0.1.nip.io': ['127.0.0.1'],
    '7f000001.nip.io': ['127.0.0.1'],
    '169-254-169-254.sslip.io': ['169.254.169.254'],
    'metadata.google.internal': ['169.254.169.254'],
    'six.example.com': ['::ffff:7f00:1'],
    'ula.example.com': ['fc00::1'],
    // Public when it is checked, private when it would be resolved again.
    'rebind.example.com': ['192.0.2.1', '127.0.0.1'],
  };
  for (const host of Object.keys(names)) {
    const { resolve, asked } = resolver(names);
    const call = callTo(`http://${host}:${port}`, { resolve });
    await t.rejects(call.get(), {
      message: `${host} has a private address, so nothing was sent to it; the operator can allow it with \`allowPrivate\``,
    });
    t.strictSame(asked, [host], 'it is resolved once for a connection');
  }
  const unknown = callTo('http://none.example.com', resolver({}));
  await t.rejects(unknown.get(), { message: 'none.example.com cannot be reached (ENOTFOUND); nothing was sent' });
  t.equal(requests.length, 0);
});

t.test('OAS-8 a private address is connected to where the file allows it, for that host and port', async (t) => {
  const { port, url } = await api(t);
  const { resolve } = resolver({ 'shop.internal': ['127.0.0.1'], 'other.internal': ['127.0.0.1'] });
  const allowPrivate = ['SHOP.internal', `127.0.0.1:${port}`, '0x7f.2', '::1'];
  t.equal(await callTo(`http://shop.internal:${port}`, { resolve, allowPrivate }).get(), 'ok');
  t.equal(await callTo(url, { allowPrivate }).get(), 'ok');
  t.equal(await callTo(url, { named: [new URL(url)] }).get(), 'ok');
  for (const refused of [`http://other.internal:${port}`, 'http://127.0.0.1:1', `http://127.0.0.3:${port}`])
    await t.rejects(callTo(refused, { resolve, allowPrivate }).get(), { message: /has a private address/ });
  const addresses = new HostPolicy({ named: [], allowPrivate });
  t.notOk(addresses.refuses(new URL('http://127.0.0.2')), 'any port');
  t.notOk(addresses.refuses(new URL('http://[::1]:99')));
});

t.test('hosts of allowPrivate are hosts, with or without a port', async (t) => {
  for (const host of ['a', 'a.b', 'a:80', '10.0.0.7', '10.0.0.7:8080', '::1', '[::1]', '[::1]:80'])
    t.ok(HostPolicy.isHost(host), host);
  for (const host of ['', 'http://a', 'a/b', 'a:b', 'a:99999', '10.0.0.0/8', 'a b', 'u@a'])
    t.notOk(HostPolicy.isHost(host), host);
});

/** A server that redirects to what `to` says, for the path of the request. */
async function redirecting(t: Test, to: (path: string) => string, status = 302) {
  return api(t, (response, { url }) => response.writeHead(status, { location: to(url) }).end());
}

t.test('OAS-8 S-07 a redirect leads to no private address', async (t) => {
  const target = await api(t);
  for (const to of [
    ...WRITTEN.filter((host) => /^[ -~]+$/.test(host)).map((host) => `http://${host}:${target.port}/`),
    'http://169.254.169.254/latest/meta-data/',
  ]) {
    const { url } = await redirecting(t, () => to);
    // The first server is the operator's, and only it.
    await t.rejects(callTo(url, { named: [new URL(url)] }).get(), { code: 'http_unreachable' }, to);
  }
  for (const [to, message] of [
    ['file:///etc/passwd', 'it redirects to file:, which is not http or https'],
    ['gopher://x', 'it redirects to gopher:, which is not http or https'],
    ['http://', '127.0.0.1 redirects to a text that is not an address'],
  ] as const) {
    const { url } = await redirecting(t, () => to);
    await t.rejects(callTo(url, { named: [new URL(url)] }).get(), { message });
  }
  t.equal(target.requests.length, 0);
});

t.test('a call that may write and was redirected to what fails is of unknown effect', async (t) => {
  const { url } = await redirecting(t, () => 'http://10.0.0.7/', 307);
  await t.rejects(callTo(url, { named: [new URL(url)] }).post(), {
    message:
      /^127.0.0.1 received the call and redirects: 10.0.0.7 has a private address.*; whether the call took effect is unknown$/,
  });
});

t.test('OAS-8 three redirects at most are followed', async (t) => {
  const shop = await api(t, (response, { url }) => {
    const step = Number(url.slice(1)) || 0;
    if (step === 3) response.end('there');
    else response.writeHead(302, { location: `/${step + 1}` }).end();
  });
  t.equal(await callTo(shop.url, { named: [new URL(shop.url)] }).get(), 'there');
  const loop = await redirecting(t, () => '/again');
  await t.rejects(callTo(loop.url, { named: [new URL(loop.url)] }).get(), { message: '127.0.0.1 redirects more than 3 times' });
  t.equal(loop.requests.length, 4);
});

t.test('OAS-8 credentials never follow to another origin', async (t) => {
  const other = await api(t);
  const headers = { Authorization: 'Bearer secret-of-shop', 'X-Key': 'secret', Cookie: 'a=b' };
  for (const status of [301, 302, 303, 307, 308]) {
    const shop = await redirecting(t, (url) => (url === '/a' ? '/b' : `${other.url}/c`), status);
    const named = [new URL(shop.url), new URL(other.url)];
    await callTo(shop.url, { named }, headers).post();
    const [first, second] = shop.requests;
    const third = other.requests.at(-1);
    t.match([first?.headers.authorization, second?.headers.authorization], [/secret/, /secret/]);
    t.notMatch(JSON.stringify(third?.headers), /secret|a=b|turn_1/);
    t.equal(third?.method, status >= 307 ? 'POST' : 'GET');
  }
});

t.test('OAS-8 the document names no private server: a mistake of the file, unless it is allowed', async (t) => {
  const { port, url } = await api(t);
  const document = documentOf({ '/a': { get: {} } }, { servers: [{ url }] });
  t.throws(
    () => entry(t, document),
    new RegExp(
      `openapi: ./shop.yaml names the server ${url}, which is private; .* set \`baseUrl\`, or allowPrivate: \\["127.0.0.1:${port}"\\]`,
    ),
  );
  t.equal(textOf(await entry(t, document, { allowPrivate: [`127.0.0.1:${port}`] }).call('get_a')), 'ok');
  t.equal(textOf(await entry(t, document, { baseUrl: url }).call('get_a')), 'ok');
  // A name is not resolved before the call.
  t.strictSame(entry(t, documentOf({ '/a': { get: {} } }, { servers: [{ url: 'http://none.invalid' }] })).names(), ['get_a']);
});
