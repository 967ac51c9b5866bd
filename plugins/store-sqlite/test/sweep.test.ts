import type { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { ANNA, DAY, HOUR, kept, OWNER, openStore, pass, session, turn } from './opened.js';

const MINUTE = 60_000;

const count = (database: DatabaseSync, table: string) => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n;

t.test('forgets a session when its last turn is `ttl` ago, and a turn that began is a use of it', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir(), { ttl: 2 * DAY });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  await store.commit(session('ben'), { expected: 0, messages: turn(1) });
  await pass(clock, 1.5 * DAY);
  await store.begin(ANNA, { turnId: 'turn_2', input: turn(2) });
  await pass(clock, DAY);
  t.equal(await store.version(session('ben')), 0);
  await store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2) });
  await pass(clock, 1.5 * DAY);
  t.equal(await store.version(ANNA), 2);
  await pass(clock, DAY);
  t.equal(await store.version(ANNA), 0);
  t.equal(count(database, 'message'), 0);
  t.equal(count(database, 'leftover'), 0);
});

t.test('deletes in small steps: a long session is gone at once, its rows follow, and its name is free meanwhile', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir(), { ttl: DAY });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: Array.from({ length: 1_200 }, (_, n) => turn(n)).flat() });
  clock.advance(DAY - HOUR);
  await store.commit(session('ben'), { expected: 0, messages: turn(1) });
  while ((await store.version(ANNA)) > 0) await pass(clock, 10 * MINUTE, 10 * MINUTE);
  await store.commit(ANNA, { expected: 0, messages: turn(7) });
  const left = [count(database, 'message')];
  while (count(database, 'leftover') !== 0) {
    await pass(clock, 50, 50);
    left.push(count(database, 'message'));
  }
  t.same(left, [1_904, 1_404, 904, 404, 4]);
  t.same(await kept(store, ANNA), { version: 1, messages: turn(7) });
  t.same(await kept(store, session('ben')), { version: 1, messages: turn(1) });
});

t.test('deletes parked messages after their hour, and interrupted turns after `ttl`', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  await first.store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  first.store.stop();
  const { store, database, clock, close } = openStore(folder, { ttl: DAY, clock: first.clock });
  t.teardown(close);
  await store.recover();
  await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(1));
  t.same(
    ['parked', 'parked_key', 'turn'].map((table) => count(database, table)),
    [1, 2, 1],
  );
  await pass(clock, 2 * HOUR);
  t.same(
    ['parked', 'parked_key', 'turn'].map((table) => count(database, table)),
    [0, 0, 1],
  );
  await pass(clock, DAY);
  t.equal(count(database, 'turn'), 0);
});

t.test('tries again later where it cannot delete, and says so', async (t) => {
  const { store, database, clock, logs, close } = openStore(t.testdir(), { ttl: HOUR });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  database.exec("CREATE TEMP TRIGGER stuck BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'stuck'); END");
  await pass(clock, 2 * HOUR);
  t.match(logs.at(-1), {
    level: 'warn',
    msg: 'could not delete what has expired; it is tried again later',
    err: { code: 'sqlite' },
  });
  t.equal(await store.version(ANNA), 1);
  database.exec('DROP TRIGGER stuck');
  await pass(clock, HOUR);
  t.equal(await store.version(ANNA), 0);
});
