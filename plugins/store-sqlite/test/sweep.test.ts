import type { DatabaseSync } from 'node:sqlite';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ANNA, DAY, HOUR, loaded, OWNER, openStore, pass, session, turn } from './open-store.js';

const MINUTE = 60_000;

const count = (database: DatabaseSync, table: string) => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n;

t.test('expires a session `ttl` after its last turn; the begin of a turn counts as use', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir(), { ttl: 2 * DAY });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  await store.commit(session('ben'), { expected: 0, messages: turn(1) });
  await pass(clock, 1.5 * DAY);
  await store.begin(ANNA, { turnId: 'turn_2', input: turn(2) });
  await pass(clock, DAY);
  t.equal(await store.info(session('ben')), undefined);
  await store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2) });
  await pass(clock, 1.5 * DAY);
  t.equal(await store.version(ANNA), 2);
  const { generation } = store;
  await pass(clock, DAY);
  t.equal(await store.info(ANNA), undefined);
  t.not(store.generation, generation, 'a cached conversation is not taken for it');
  t.same(await loaded(store, ANNA), { version: 3, messages: [] }, 'a new session is not taken for the expired one');
  t.equal(count(database, 'message'), 0);
  t.equal(count(database, 'leftover'), 0);
});

t.test('expires a long session at once and its messages in small steps; its id is free meanwhile', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir(), { ttl: DAY });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: Array.from({ length: 1_200 }, (_, n) => turn(n)).flat() });
  clock.advance(DAY - HOUR);
  await store.commit(session('ben'), { expected: 0, messages: turn(1) });
  while (await store.info(ANNA)) await pass(clock, 10 * MINUTE, 10 * MINUTE);
  await store.commit(ANNA, { expected: 2, messages: turn(7) });
  const left = [count(database, 'message')];
  while (count(database, 'leftover') !== 0) {
    await pass(clock, 50, 50);
    left.push(count(database, 'message'));
  }
  t.same(left, [1_904, 1_404, 904, 404, 4]);
  t.same(await loaded(store, ANNA), { version: 3, messages: turn(7) });
  t.same(await loaded(store, session('ben')), { version: 1, messages: turn(1) });
});

t.test('deletes pending tool calls after one hour and interrupted turns after `ttl`', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  await first.store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  first.store.stop();
  const { store, database, clock, close } = openStore(folder, { ttl: DAY, clock: first.clock });
  t.teardown(close);
  await store.recover();
  await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(1));
  t.same(
    ['pending_tool_call', 'pending_tool_call_key', 'turn'].map((table) => count(database, table)),
    [1, 2, 1],
  );
  await pass(clock, 2 * HOUR);
  t.same(
    ['pending_tool_call', 'pending_tool_call_key', 'turn'].map((table) => count(database, table)),
    [0, 0, 1],
  );
  await pass(clock, DAY);
  t.equal(count(database, 'turn'), 0);
});

t.test('deletes expired keys of the state in small steps, and counts what is left', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  const keys = Array.from({ length: 250 }, (_, n) => ({ entry: 'plugins.pager', key: `k${n}`, text: '1', expiresIn: HOUR }));
  await store.state.change([...keys, { entry: 'plugins.pager', key: 'stays', text: '1' }]);
  clock.advance(HOUR - 5 * MINUTE);
  await pass(clock, 10 * MINUTE, 10 * MINUTE);
  const left = [count(database, 'state')];
  for (let step = 0; step < 2; step++) {
    await pass(clock, 50, 50);
    left.push(count(database, 'state'));
  }
  t.same(left, [151, 51, 1]);
  t.same(database.prepare('SELECT * FROM state_count').all(), [{ entry: 'plugins.pager', keys: 1 }]);
});

t.test('logs a failed sweep and retries', async (t) => {
  const { store, database, clock, logs, close } = openStore(t.testdir(), { ttl: HOUR });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  database.exec("CREATE TEMP TRIGGER stuck BEFORE DELETE ON session BEGIN SELECT RAISE(ABORT, 'stuck'); END");
  await pass(clock, 2 * HOUR);
  t.match(logs.at(-1), {
    level: 'warn',
    msg: 'could not delete expired rows; will retry',
    err: { code: 'sqlite' },
  });
  t.equal(await store.version(ANNA), 1);
  database.exec('DROP TRIGGER stuck');
  await pass(clock, HOUR);
  t.equal(await store.info(ANNA), undefined);
});

/** A clock whose wall time a test can change. */
class WrongClock extends ManualClock {
  ahead = 0;

  override now(): number {
    return super.now() + this.ahead;
  }
}

t.test('S-76 a clock that is 40 days off for a while, or at the start, expires nothing', async (t) => {
  const folder = t.testdir();
  const clock = new WrongClock();
  let opened = openStore(folder, { clock });
  t.teardown(() => opened.close());
  const key = { project: 'acme', route: '/v1/x', key: 'k' };
  const kept = async (what: string) => {
    const { store } = opened;
    t.match(await store.info(ANNA), { turns: 1 }, what);
    t.match(await store.idempotency.claim(key, 'f1'), { fingerprint: 'f' }, what);
    t.equal((await store.pendingToolCalls.load(OWNER, 'call'))?.length, 2, what);
    t.equal(await store.version(session('gone')), 2, what);
    t.equal(await store.state.get('plugins.pager', 'seen'), '1', what);
  };
  const { store } = opened;
  for (const jump of [0, 40 * DAY, -40 * DAY]) {
    // What is written while the clock is wrong lives as long as anything else.
    clock.ahead = jump;
    await store.delete(ANNA);
    await store.commit(ANNA, { expected: await store.version(ANNA), messages: turn(1) });
    await store.delete(session('gone'));
    const version = jump === 0 ? 0 : undefined;
    if (version !== undefined) await store.commit(session('gone'), { expected: version, messages: turn(1) });
    if (version !== undefined) await store.delete(session('gone'));
    await store.idempotency.put({ key, fingerprint: 'f', result: 'began' });
    await store.pendingToolCalls.save(OWNER, ['call'], turn(1));
    await store.state.change([{ entry: 'plugins.pager', key: 'seen', text: '1', expiresIn: 3 * DAY }]);
    for (const wrong of [40 * DAY, -40 * DAY, 0]) {
      clock.ahead = wrong;
      await pass(clock, 12 * 60_000, 60_000); // the sweeper runs
      await kept(`written ${jump} ms off, read ${wrong} ms off`);
    }
  }
  await opened.close();
  clock.ahead = 40 * DAY;
  opened = openStore(folder, { clock });
  await pass(clock, 12 * 60_000, 60_000);
  await kept('after a start with a wrong clock');
});
