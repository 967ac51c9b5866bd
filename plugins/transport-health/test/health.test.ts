import { AgentRuntimes, AuthProviders, type HostView, Transports } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { pluginContract, testContext } from '@plugboard/testing';
import http, { HttpRoutes } from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';

type EntryReport = ReturnType<HostView['entries']>[number];

const PATHS = ['/health', '/healthz', '/readyz'];

async function serve(t: Test, ready: () => Promise<boolean>, entries: readonly EntryReport[] = []) {
  const { signal: stopRequested } = new AbortController();
  const host = { phase: 'running', stopRequested, entries: () => entries, literal: () => undefined } as const;
  const health = testContext(plugin, { entry: 'transports.health', host });
  health.provide(AgentRuntimes, { ready } as AgentRuntime);
  const server = testContext(http, { entry: 'transports.http', config: { port: 0 } });
  for (const path of PATHS) server.provide(HttpRoutes, health.contributed(HttpRoutes, path), 'health');
  server.provide(AuthProviders, { authenticate: () => ({ refused: 'everybody' }) });
  await server.lifecycle.start?.(new AbortController().signal);
  t.teardown(() => server.lifecycle.stop?.(AbortSignal.abort()));
  return { url: String(server.contributed(Transports).address()), logs: health.logs };
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
