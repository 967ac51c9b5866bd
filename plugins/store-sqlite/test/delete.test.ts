import type { DatabaseSync } from 'node:sqlite';
import { Sweeper } from '@plugboard/store-kit';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ANNA, DAY, HOUR, OWNER, openStore, pass, session, turn } from './open-store.js';

const count = (database: DatabaseSync, table: string) => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n;

t.test('deletes a long session at once and its messages soon after, in small steps', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: Array.from({ length: 600 }, (_, n) => turn(n)).flat() });
  await store.putSummary(ANNA, 1, { messages: 2, text: 'rain' });
  await store.begin(ANNA, { turnId: 'turn_2', input: turn(2) });
  t.equal(await store.delete(ANNA), true);
  t.same(
    ['session', 'summary', 'turn', 'tombstone', 'leftover', 'message'].map((table) => count(database, table)),
    [0, 0, 0, 1, 1, 1_200],
  );
  await store.commit(ANNA, { expected: 2, messages: turn(7) });
  const left: unknown[] = [];
  while (count(database, 'leftover') !== 0) {
    await pass(clock, 50, 50);
    left.push(count(database, 'message'));
  }
  t.same(left, [702, 202, 2]);
  t.match(await store.load(ANNA), { version: 3, messages: turn(7) });
});

t.test('sweeps a session that was deleted before a restart', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  await first.store.commit(ANNA, { expected: 0, messages: turn(1) });
  await first.store.delete(ANNA);
  first.close();
  const { database, clock, close } = openStore(folder, { clock: first.clock });
  t.teardown(close);
  t.equal(count(database, 'message'), 2);
  await pass(clock, HOUR);
  t.equal(count(database, 'message'), 0);
});

t.test('deletes tombstones after 30 days, in small steps', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  const ids = Array.from({ length: 150 }, (_, n) => session(`s${n}`));
  await Promise.all(ids.map((id) => store.create(id, { metadata: {}, messages: [] })));
  await Promise.all(ids.map((id) => store.delete(id)));
  await pass(clock, DAY);
  await store.create(ANNA, { metadata: {}, messages: [] });
  await store.delete(ANNA);
  t.equal(count(database, 'tombstone'), 151);
  await pass(clock, 28 * DAY, DAY);
  t.equal(count(database, 'tombstone'), 151);
  await pass(clock, DAY, HOUR);
  t.equal(count(database, 'tombstone'), 51);
  await pass(clock, 50, 50);
  t.equal(count(database, 'tombstone'), 1);
});

t.test('deletes the summary of an expired session', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir(), { ttl: DAY });
  t.teardown(close);
  await store.create(ANNA, { metadata: { topic: 'rain' }, messages: turn(1) });
  await store.putSummary(ANNA, 1, { messages: 2, text: 'rain' });
  await pass(clock, 2 * DAY);
  t.same(
    ['session', 'summary', 'message', 'tombstone'].map((table) => count(database, table)),
    [0, 0, 0, 1],
  );
  t.equal(await store.info(ANNA), undefined);
  t.same(await store.list(OWNER.project, { limit: 10, order: 'asc' }), []);
});

t.test('sweeps again if something was deleted during a step, but not after it was stopped', async (t) => {
  const clock = new ManualClock();
  const steps: PromiseWithResolvers<boolean>[] = [];
  const sweeper = new Sweeper(
    clock,
    () => {
      const step = Promise.withResolvers<boolean>();
      steps.push(step);
      return step.promise;
    },
    () => {},
  );
  const end = async (hasMore: boolean) => {
    steps.at(-1)?.resolve(hasMore);
    await new Promise(setImmediate);
  };
  clock.advance(10 * 60_000);
  sweeper.wake();
  await end(false);
  clock.advance(50);
  t.equal(steps.length, 2, 'the first step may have missed it');
  await end(true);
  sweeper.wake();
  clock.advance(50);
  t.equal(steps.length, 3);
  await end(false);
  sweeper.wake();
  sweeper.wake();
  t.equal(clock.pending, 1);
  clock.advance(50);
  t.equal(steps.length, 4);
  sweeper.stop();
  await end(true);
  sweeper.wake();
  t.equal(clock.pending, 0);
});
