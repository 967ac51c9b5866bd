import { AgentRuntimes, type AuthProvider, AuthProviders, type HostView, Transports } from '@plugboard/kernel';
import type { AgentRuntime, Scope } from '@plugboard/kernel/contracts';
import { ManualClock, pluginContract, testContext } from '@plugboard/testing';
import http, { HttpRoutes } from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';

type EntryReport = ReturnType<HostView['entries']>[number];

const PATHS = ['/health', '/healthz', '/readyz'];

interface Callers {
  /** The scopes of the token `good`. An open server without it. */
  readonly scopes?: readonly Scope[];
  readonly isOpen?: boolean;
}

async function serve(
  t: Test,
  ready: () => Promise<boolean>,
  entries: readonly EntryReport[] = [],
  { scopes = [], isOpen = false }: Callers = {},
) {
  const { signal: stopRequested } = new AbortController();
  const host = { version: '1.2.3', phase: 'running', stopRequested, entries: () => entries, literal: () => undefined } as const;
  const clock = new ManualClock();
  const health = testContext(plugin, { entry: 'transports.health', host, clock });
  health.budgets.create({ name: 'chairs', unit: 'chairs', limit: 4, setting: 'limits.chairs' }).reserve([], 3);
  health.provide(AgentRuntimes, { ready } as AgentRuntime);
  const check = { literal: () => (isOpen ? 'open' : undefined) };
  const server = testContext(http, { entry: 'transports.http', config: { port: 0 }, check });
  for (const path of [...PATHS, '/v1/status']) server.provide(HttpRoutes, health.contributed(HttpRoutes, path), 'health');
  const authenticate: AuthProvider['authenticate'] = ({ bearer }) =>
    bearer === 'good' ? { principal: { project: 'acme', scopes } } : { refused: 'everybody' };
  if (!isOpen) server.provide(AuthProviders, { authenticate });
  await server.lifecycle.start?.(new AbortController().signal);
  t.teardown(() => server.lifecycle.stop?.(AbortSignal.abort()));
  return { url: String(server.contributed(Transports).address()), logs: health.logs, clock };
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test(
  'C-160 C-143 every probe has the three fields and no others, without a token, and ready flips with the server',
  async (t) => {
    let ready = false;
    const { url } = await serve(t, async () => ready);
    for (const now of [false, true, false]) {
      ready = now;
      for (const path of PATHS) {
        const reply = await fetch(`${url}${path}`);
        t.equal(reply.status, path === '/readyz' && !now ? 503 : 200, path);
        t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
        t.strictSame(await reply.json(), { status: 'ok', service: 'plugboard', ready: now });
      }
    }
  },
);

t.test('C-160 a runtime that fails to report readiness is not ready', async (t) => {
  const { url, logs } = await serve(t, () => Promise.reject(new Error('the store is out of its mind')));
  const reply = await fetch(`${url}/health`);
  t.equal(reply.status, 200);
  t.strictSame(await reply.json(), { status: 'ok', service: 'plugboard', ready: false });
  t.equal((await fetch(`${url}/readyz`)).status, 503);
  t.match(logs, [{ level: 'error', err: { message: 'the store is out of its mind' } }, { level: 'error' }]);
});

t.test('C-160 C-143 a server whose entry fails is not ready, unless the entry is optional, and names nothing', async (t) => {
  const entry = 'transports.telegram';
  const failed = { state: 'failed', reason: 'the token was refused' } as const;
  const cases: readonly [report: Partial<EntryReport>, status: number][] = [
    [{ health: failed }, 503],
    [{ health: failed, optional: true }, 200],
    [{ health: { state: 'degraded' } }, 200],
    [{ health: { state: 'ok' } }, 200],
    [{}, 200],
  ];
  for (const [report, status] of cases) {
    const { url } = await serve(t, async () => true, [{ entry, status: 'running', optional: false, ...report }]);
    const reply = await fetch(`${url}/readyz`);
    t.equal(reply.status, status, JSON.stringify(report));
    t.strictSame(await reply.json(), { status: 'ok', service: 'plugboard', ready: status === 200 });
    t.equal((await fetch(`${url}/healthz`)).status, 200);
  }
});

t.test('C-015 HEAD is answered like GET, without the body', async (t) => {
  const { url } = await serve(t, async () => false);
  for (const [path, status] of [
    ['/health', 200],
    ['/readyz', 503],
  ] as const) {
    const reply = await fetch(`${url}${path}`, { method: 'HEAD' });
    t.equal(reply.status, status);
    t.equal(await reply.text(), '');
  }
});

const ENTRIES: readonly EntryReport[] = [
  { entry: 'transports.http', plugin: '@plugboard/transport-http', version: '0.1.0', status: 'running', optional: false },
  { entry: 'tools.files', status: 'running', optional: false, health: { state: 'degraded', reason: 'it is restarted' } },
  { entry: 'models.slow', status: 'disabled', optional: true, reason: 'the variable KEY is not set' },
];

t.test('the status shows each entry with its health, and the limits in use', async (t) => {
  const { url, clock } = await serve(t, async () => true, ENTRIES, { scopes: ['admin'] });
  clock.advance(61_500);
  const reply = await fetch(`${url}/v1/status`, { headers: { authorization: 'Bearer good' } });
  t.equal(reply.status, 200);
  t.equal(reply.headers.get('cache-control'), 'no-store');
  const body = (await reply.json()) as { readonly limits: readonly object[] };
  const unknown = { plugin: null, version: null, health: null, reason: null };
  t.strictSame(
    { ...body, limits: [] },
    {
      status: 'ok',
      service: 'plugboard',
      ready: true,
      version: '1.2.3',
      phase: 'running',
      uptime_seconds: 61,
      entries: [
        { ...unknown, entry: 'transports.http', plugin: '@plugboard/transport-http', version: '0.1.0', status: 'running' },
        { ...unknown, entry: 'tools.files', status: 'running', health: 'degraded', reason: 'it is restarted' },
        { ...unknown, entry: 'models.slow', status: 'disabled', reason: 'the variable KEY is not set' },
      ],
      limits: [],
    },
  );
  t.match(body.limits, [
    { setting: 'limits.memory', used: 0, refused: 0 },
    { name: 'chairs', unit: 'chairs', setting: 'limits.chairs', limit: 4, used: 3, peak: 3, refused: 0 },
  ]);
});

t.test('the status is for tokens with the scope admin, and for every caller of an open server', async (t) => {
  const others: readonly Scope[] = ['chat', 'models:read', 'sessions:read', 'sessions:write', 'approve'];
  const closed = await serve(t, async () => true, ENTRIES, { scopes: others });
  t.equal((await fetch(`${closed.url}/v1/status`)).status, 401);
  const refused = await fetch(`${closed.url}/v1/status`, { headers: { authorization: 'Bearer good' } });
  t.equal(refused.status, 403);
  t.notMatch(await refused.text(), /tools\.files/);
  const open = await serve(t, async () => true, ENTRIES, { isOpen: true });
  t.equal((await fetch(`${open.url}/v1/status`)).status, 200);
});
