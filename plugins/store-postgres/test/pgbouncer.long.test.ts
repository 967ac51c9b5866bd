import { eventually, ManualClock, type StoreQuotas, sessionStoreContract } from '@plugboard/testing';
import t from 'tap';
import { acquire, DAY, loaded, openStore, SYSTEM_CLOCK, session, turn, wipe } from './open-store.js';
import { startPgBouncer } from './real-pgbouncer.js';
import { realPostgres } from './real-postgres.js';

t.test('PG-2 fulfils the session store contract behind PgBouncer in transaction mode', async (t) => {
  const { url } = await startPgBouncer(t);
  const clock = new ManualClock();
  const { schema, close } = await openStore({ clock });
  await close();
  // The cases move the clock by days, and a lease that ends meanwhile is not their subject.
  const openAgain = (settings: Parameters<typeof openStore>[0] = {}) =>
    openStore({ clock, url, schema, lease: 365 * DAY, ...settings });
  const open = async (settings?: Parameters<typeof openStore>[0]) => {
    await wipe(schema);
    return openAgain(settings);
  };
  const reopen = async (opened: { close?(): unknown }) => {
    await opened.close?.();
    return openAgain();
  };
  const openTwo = async () => {
    const one = await openStore({ clock: SYSTEM_CLOCK, url });
    return [one, await openStore({ clock: SYSTEM_CLOCK, url, schema: one.schema })] as const;
  };
  const openLimited = (quotas: StoreQuotas) => open({ quotas });
  sessionStoreContract(t.test, { open: () => open(), clock, reopen, openLimited, openTwo });
});

t.test('PG-1 no notification comes through PgBouncer in transaction mode, and `listenUrl` leads past it', async (t) => {
  const { url: listenUrl } = await realPostgres();
  const { url } = await startPgBouncer(t);
  const through = await openStore({ url, clock: SYSTEM_CLOCK });
  t.teardown(through.close);
  const warnings = () => through.logs.filter(({ level }) => level === 'warn');
  await eventually(() => warnings().length > 0);
  t.match(warnings(), [{ msg: /Behind a pooler in transaction mode, set `listenUrl` to the address of PostgreSQL itself/ }]);
  const past = await openStore({ url, listenUrl: listenUrl(), clock: SYSTEM_CLOCK, schema: through.schema });
  t.teardown(past.close);
  await acquire(through.store, 'turn_1');
  const waiting = acquire(past.store, 'turn_2');
  await eventually(async () => (await past.rows('turn')) === 2);
  await through.store.abandon(session('anna'), 'turn_1');
  t.equal((await waiting).isHeld, true);
  t.notOk(past.logs.some(({ level }) => level === 'warn'));
});

t.test('PG-2 PG-7 turns go on behind a PgBouncer that is restarted', async (t) => {
  const { url, restart } = await startPgBouncer(t);
  const { store, close } = await openStore({ url, clock: SYSTEM_CLOCK, poolSize: 10 });
  t.teardown(close);
  const run = async (key: string) => {
    for (let n = 0; n < 20; n++) {
      const turnId = `turn_${key}_${n}`;
      await store.begin(session(key), { turnId, input: turn(n) });
      await store.commit(session(key), { turnId, expected: n, messages: turn(n) });
    }
  };
  const keys = Array.from({ length: 20 }, (_, n) => `s${n}`);
  const turns = Promise.all(keys.map(run));
  for (let n = 0; n < 3; n++) {
    await eventually(async () => (await store.version(session('s0'))) > 4 * n);
    await restart();
  }
  await turns;
  const all = Array.from({ length: 20 }, (_, n) => turn(n)).flat();
  for (const key of keys) t.same(await loaded(store, session(key)), { version: 20, messages: all });
});
