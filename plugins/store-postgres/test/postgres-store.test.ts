import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  checkOptions,
  ManualClock,
  pluginContract,
  type StoreQuotas,
  sessionStoreContract,
  testContext,
} from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { ANNA, DAY, endLease, newSchema, OWNER, openStore, SYSTEM_CLOCK, turn, wipe } from './open-store.js';
import { realPostgres } from './real-postgres.js';

t.test('fulfils the plugin contract', async (t) => {
  const config = { url: 'postgres://plugboard@127.0.0.1/plugboard' };
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), folder: t.testdir(), config });
});

t.test('refuses a URL of another kind, and a lease that is too short or too long', async (t) => {
  const faults = (options: object) => checkOptions(plugin, options).faults;
  const url = 'postgresql://plugboard:word@db.example.com/plugboard?sslmode=verify-full';
  t.strictSame(faults({ url }), []);
  for (const wrong of ['mysql://db/x', 'db.example.com', 'postgres']) {
    t.strictSame(faults({ url: wrong }), ['url: must have the form postgres://user:password@host:5432/database']);
  }
  for (const lease of ['4s', '6m']) t.strictSame(faults({ url, lease }), ['lease: must be from 5s to 5m']);
  t.match(faults({ url, schema: 'a"; DROP SCHEMA public; --' }), [/^schema: /]);
});

t.test('PG-14 PG-20 PG-24 PG-27 fulfils the session store contract, alone and beside another server', async (t) => {
  const { url } = await realPostgres();
  const clock = new ManualClock();
  const { schema, close } = await openStore({ clock });
  await close();
  // The cases move the clock by days, and a lease that ends meanwhile is not their subject.
  const openAgain = (settings: Parameters<typeof openStore>[0] = {}) =>
    openStore({ clock, schema, poolSize: 2, lease: 365 * DAY, ...settings });
  const open = async (settings?: Parameters<typeof openStore>[0]) => {
    await wipe(schema);
    return openAgain(settings);
  };
  const reopen = async (opened: { close?(): unknown }) => {
    await opened.close?.();
    return openAgain();
  };
  const openCapped = {
    idempotencyRecords: (maxRecords: number) => open({ caps: { maxRecords } }),
    stateKeys: (maxStateKeys: number) => open({ caps: { maxStateKeys } }),
  };
  const kill = () => {
    const own = newSchema();
    const args = [fileURLToPath(new URL('fixtures/killed.mjs', import.meta.url)), url(), own];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return { process: child, open: () => endLease(own).then(() => openStore({ schema: own, clock: SYSTEM_CLOCK })) };
  };
  const openTwo = async () => {
    const one = await openStore({ clock: SYSTEM_CLOCK });
    return [one, await openStore({ clock: SYSTEM_CLOCK, schema: one.schema })] as const;
  };
  const register = (folder: string) => testContext(plugin, { folder, clock, config: { url: url() } });
  const openLimited = (quotas: StoreQuotas) => open({ quotas });
  sessionStoreContract(t.test, { open: () => open(), clock, reopen, kill, openLimited, openCapped, openTwo, register });
});

t.test('leaves no connection, no row of a server and no timer behind when it stops', async (t) => {
  const { query } = await realPostgres();
  const clock = new ManualClock();
  const { store, schema, rows } = await openStore({ clock });
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  t.equal(await rows('replica'), 1);
  await store.stop();
  t.equal(await rows('replica'), 0);
  t.equal(clock.pending, 0);
  const left = await query('SELECT FROM pg_stat_activity WHERE query LIKE $1', [`%"${schema}"%replica WHERE id = $1%`]);
  t.equal(left.filter((row) => 'application_name' in row).length, 0);
  for (const use of [() => store.load(ANNA), () => store.pendingToolCalls.save(OWNER, ['call_1'], []), () => store.recover()]) {
    await t.rejects(async () => void (await use()), { code: 'not_open', message: /has not started yet, or it has stopped/ });
  }
  t.match(await store.health(), { ok: false, reason: /is not open/ });
  await store.stop();
});
