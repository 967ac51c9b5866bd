import { type HostView, Transports } from '@plugboard/kernel';
import { checkOptions, pluginContract, testContext } from '@plugboard/testing';
import t from 'tap';
import { listenError } from '../../src/http-transport.js';
import plugin, { HttpRoutes } from '../../src/index.js';
import { get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const start = new AbortController().signal;

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('../..', import.meta.url) });
});

t.test('reports its address while it runs', async (t) => {
  const ctx = testContext(plugin, { config: { port: 0 } });
  const transport = ctx.contributed(Transports);
  t.equal(transport.address(), undefined);
  await ctx.lifecycle.start?.(start);
  t.match(transport.address(), /^http:\/\/127\.0\.0\.1:\d+$/);
  await ctx.lifecycle.stop?.(start);
  t.equal(transport.address(), undefined);
});

t.test('reports an address that this machine can connect to', async (t) => {
  for (const [host, address] of [
    ['localhost', /^http:\/\/localhost:/],
    ['0.0.0.0', /^http:\/\/127\.0\.0\.1:/],
    ['::', /^http:\/\/\[::1\]:/],
    ['::1', /^http:\/\/\[::1\]:/],
  ] as const) {
    const { url } = await serve(t, { config: { host }, routes: [get('/x', () => ({ status: 200, body: {} }))] });
    t.match(url, address);
    t.equal((await fetch(`${url}/x`)).status, 200, host);
  }
});

t.test('a port in use is named with the entry and the cure', async (t) => {
  const { port } = await serve(t);
  const ctx = testContext(plugin, { config: { port }, entry: 'transports.http' });
  await t.rejects(async () => ctx.lifecycle.start?.(start), {
    message: `port ${port} of 127.0.0.1 is in use by another program: stop that program, or set another \`port\` for transports.http (0 picks a free one)`,
    cause: { code: 'EADDRINUSE' },
  });
  await ctx.lifecycle.stop?.(start);
});

t.test('a foreign address is named with the entry and the cure', async (t) => {
  for (const host of ['192.0.2.1', 'no-such-host.invalid']) {
    const ctx = testContext(plugin, { config: { host, port: 0 }, entry: 'transports.http', check: { literal: () => 'open' } });
    await t.rejects(async () => ctx.lifecycle.start?.(start), {
      message: `${host} is not an address of this machine: set another \`host\` for transports.http, such as 127.0.0.1 or 0.0.0.0`,
    });
  }
});

t.test('two entries with the same route are both named', async (t) => {
  const ctx = testContext(plugin, { config: { port: 0 } });
  const route = get('/health', () => ({ status: 200 }));
  ctx.provide(HttpRoutes, route, 'one');
  ctx.provide(HttpRoutes, route, 'two');
  await t.rejects(async () => ctx.lifecycle.start?.(start), {
    message: 'test.one and test.two both serve GET /health: remove one of them from the configuration',
  });
});

t.test('an open server on another address than loopback is refused with both cures', async (t) => {
  const refusal =
    /^host: "0\.0\.0\.0" accepts connections from other machines.* a provider under `auth`, such as `bearer`, or set `auth: open`/;
  t.match(checkOptions(plugin, { host: '0.0.0.0' }).faults, [refusal]);
  t.match(checkOptions(plugin, { host: '192.168.0.1' }).faults.length, 1);
  t.same(
    checkOptions(plugin, { host: '0.0.0.0' }, { literal: (section) => (section === 'auth' ? 'open' : undefined) }).faults,
    [],
  );
  t.same(checkOptions(plugin, { host: '0.0.0.0' }, { entries: (section) => (section === 'auth' ? ['bearer'] : []) }).faults, []);
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) t.same(checkOptions(plugin, { host }).faults, []);
});

t.test('malformed hosts and origins are configuration errors', async (t) => {
  const auth = { entries: () => ['bearer'] };
  t.same(checkOptions(plugin, { hosts: ['a.example', 'a.example:80', '[::1]:80'], origins: ['https://a.example'] }).faults, []);
  t.same(
    checkOptions(plugin, { hosts: ['a@b', '', ':80', 'http://a'], origins: ['https://a/', 'a.example', 'null'] }, auth).faults,
    [
      'hosts[0]: "a@b" is not a valid host name; use the form agents.example.org or agents.example.org:8080',
      'hosts[1]: "" is not a valid host name; use the form agents.example.org or agents.example.org:8080',
      'hosts[2]: ":80" is not a valid host name; use the form agents.example.org or agents.example.org:8080',
      'hosts[3]: "http://a" is not a valid host name; use the form agents.example.org or agents.example.org:8080',
      ...['https://a/', 'a.example', 'null'].map(
        (text, at) =>
          `origins[${at}]: "${text}" is not a valid origin: use a scheme, a host and optionally a port, such as https://app.example.org`,
      ),
    ],
  );
});

t.test('C-149 the origin * requires an auth provider', async (t) => {
  t.same(checkOptions(plugin, { origins: ['*'] }, { entries: () => ['bearer'] }).faults, []);
  for (const auth of ['open', undefined] as const) {
    const { faults } = checkOptions(plugin, { origins: ['*'] }, { literal: () => auth });
    t.match(faults, [/^origins\[0\]: "\*" lets any web page .* list the sites, or configure a provider/]);
  }
});

t.test('only an open server logs an audit event at start, in the line that says where it listens', async (t) => {
  const open = await serve(t);
  t.equal(open.logs.filter(({ level, msg }) => level === 'warn' || msg === 'listening').length, 1);
  const audited = open.logs.filter(({ log }) => log === 'audit');
  t.match(audited, [{ event: 'open_start', entry: 'transports.http', address: open.url, msg: 'listening' }]);
  const closed = await serve(t, { providers: [{ authenticate: () => undefined }] });
  t.same(
    closed.logs.filter(({ level, log }) => level === 'warn' || log === 'audit'),
    [],
  );
});

t.test('other listen errors keep their message', async (t) => {
  const failed = (code: string) => Object.assign(new Error(`listen ${code}`), { code });
  const config = checkOptions(plugin, { port: 80 }).config;
  t.match(listenError(failed('EACCES'), 'transports.http', config), {
    message: 'port 80 of 127.0.0.1 is reserved by the system: set a `port` of 1024 or higher for transports.http',
  });
  t.match(listenError(failed('EMFILE'), 'transports.http', config), {
    message: 'transports.http cannot listen on port 80 of 127.0.0.1: listen EMFILE',
    cause: { code: 'EMFILE' },
  });
});

t.test('an aborted start leaves nothing open', async (t) => {
  const ctx = testContext(plugin, { config: { port: 0 } });
  await t.rejects(async () => ctx.lifecycle.start?.(AbortSignal.abort(new Error('called off'))), { message: 'called off' });
  t.equal(ctx.contributed(Transports).address(), undefined);
  await ctx.lifecycle.stop?.(start);
});

t.test('S-13 entries under auth without an auth provider do not leave the server open', async (t) => {
  const host: HostView = {
    version: '0.0.0',
    phase: 'starting',
    stopRequested: start,
    entries: () => [{ entry: 'auth.metrics', status: 'running', optional: false }],
    literal: () => undefined,
  };
  const ctx = testContext(plugin, { config: { port: 0 }, host });
  await t.rejects(async () => ctx.lifecycle.start?.(start), {
    message: /^auth\.metrics: no entry under `auth` provides authentication/,
  });
});
