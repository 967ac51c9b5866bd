import { spawn } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SessionStores } from '@plugboard/kernel';
import { ManualClock, pluginContract, type StoreQuotas, sessionStoreContract, testContext } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { ANNA, OWNER, openStore, turn } from './open-store.js';

t.test('fulfils the plugin contract', async (t) => {
  const folder = t.testdir();
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), folder });
});

t.test('fulfils the session store contract', async (t) => {
  const clock = new ManualClock();
  const root = t.testdir();
  let count = 0;
  const open = () => openStore(join(root, String(count++)), { clock });
  const reopen = async (opened: { close?(): unknown }) => {
    await opened.close?.();
    return openStore(join(root, String(count - 1)), { clock });
  };
  const openLimited = (quotas: StoreQuotas) => openStore(join(root, String(count++)), { clock, quotas });
  const openCapped = {
    idempotencyRecords: (maxRecords: number) => openStore(join(root, String(count++)), { clock, caps: { maxRecords } }),
    stateKeys: (maxStateKeys: number) => openStore(join(root, String(count++)), { clock, caps: { maxStateKeys } }),
  };
  const kill = () => {
    const folder = join(root, String(count++));
    mkdirSync(folder);
    const args = [fileURLToPath(new URL('fixtures/killed.mjs', import.meta.url)), join(folder, 'sessions.db')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return { process: child, open: () => openStore(folder, { clock: new ManualClock(Date.now()) }) };
  };
  const register = (folder: string) => testContext(plugin, { folder, clock });
  sessionStoreContract(t.test, { open, clock, reopen, kill, openLimited, openCapped, register });
});

t.test('creates the file relative to the configuration, with its folders, for the server alone', async (t) => {
  const folder = t.testdir();
  const ctx = testContext(plugin, { folder, entry: 'sessions' });
  const path = join(folder, 'data', 'sessions.db');
  const { signal } = new AbortController();
  t.throws(() => statSync(dirname(path)), { code: 'ENOENT' }, 'registering has no side effects');
  await ctx.lifecycle.start?.(signal);
  t.teardown(() => ctx.lifecycle.stop?.(signal));
  await ctx.contributed(SessionStores).commit(ANNA, { expected: 0, messages: turn(1) });
  t.equal(statSync(dirname(path)).mode & 0o777, 0o700);
  for (const file of [path, `${path}-wal`]) t.equal(statSync(file).mode & 0o777, 0o600, file.slice(folder.length));
});

t.test('says through its lifecycle whether the store works', (t) => {
  const { lifecycle } = testContext(plugin, { folder: t.testdir(), entry: 'sessions' });
  const { signal } = new AbortController();
  t.match(lifecycle.health?.(), { state: 'failed', reason: /is not open/ });
  lifecycle.start?.(signal);
  t.strictSame(lifecycle.health?.(), { state: 'ok' });
  lifecycle.stop?.(signal);
  t.end();
});

t.test('leaves one file and no timer behind when it stops', async (t) => {
  const clock = new ManualClock();
  const { store, path } = openStore(t.testdir(), { clock });
  const written = store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
  await written;
  t.throws(() => statSync(`${path}-wal`), { code: 'ENOENT' });
  t.equal(clock.pending, 0);
  for (const use of [() => store.load(ANNA), () => store.pendingToolCalls.save(OWNER, ['call_1'], []), () => store.recover()]) {
    await t.rejects(async () => void (await use()), { code: 'not_open', message: /has not started yet, or it has stopped/ });
  }
  t.match(await store.health(), { ok: false, reason: /is not open/ });
  store.stop();
});
