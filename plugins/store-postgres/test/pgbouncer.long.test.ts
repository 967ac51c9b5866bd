import { eventually, ManualClock, type StoreQuotas, sessionStoreContract } from '@plugboard/testing';
import t from 'tap';
import { loaded, openStore, SYSTEM_CLOCK, session, turn, wipe } from './open-store.js';
import { startPgBouncer } from './real-pgbouncer.js';

t.test('PG-2 fulfils the session store contract behind PgBouncer in transaction mode', async (t) => {
  const { url } = await startPgBouncer(t);
  const clock = new ManualClock();
  const { schema, close } = await openStore({ clock });
  await close();
  const openAgain = (settings: Parameters<typeof openStore>[0] = {}) => openStore({ clock, url, schema, ...settings });
  const open = async (settings?: Parameters<typeof openStore>[0]) => {
    await wipe(schema);
    return openAgain(settings);
  };
  const reopen = async (opened: { close?(): unknown }) => {
    await opened.close?.();
    return openAgain();
  };
  sessionStoreContract(t.test, { open: () => open(), clock, reopen, openLimited: (quotas: StoreQuotas) => open({ quotas }) });
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
