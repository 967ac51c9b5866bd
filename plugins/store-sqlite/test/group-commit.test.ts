import { statSync } from 'node:fs';
import { join } from 'node:path';
import { VersionConflict } from '@plugboard/kernel/contracts';
import t, { type Test } from 'tap';
import { GROUP_TICKS, GroupCommit, SYNC_TICKS, type WriteKind } from '../src/database/group-commit.js';
import { LogSync } from '../src/database/log-sync.js';
import { openDatabase } from '../src/database/open-database.js';
import { ANNA, groupCommitted, loaded, openStore, session, turn } from './open-store.js';

const PAGE = 4_096;

t.test('commits concurrent turns in one transaction; each can fail on its own', async (t) => {
  const { store, path, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  const before = statSync(`${path}-wal`).size;
  const keys = Array.from({ length: 64 }, (_, i) => `s${i}`);
  const results = await Promise.allSettled([
    ...keys.map((key) => store.commit(session(key), { expected: 0, messages: turn(1) })),
    store.commit(ANNA, { expected: 0, messages: turn(9) }),
  ]);
  t.match(results.pop(), { status: 'rejected', reason: new VersionConflict(0, 1) });
  t.ok(results.every(({ status }) => status === 'fulfilled'));
  const pages = (statSync(`${path}-wal`).size - before) / PAGE;
  t.ok(pages < keys.length, `64 commits wrote ${pages.toFixed(0)} pages: each page once`);
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) });
});

const noTurns = () => 0;

/** A file with a group commit whose syncs the test ends. */
function manualSyncs(t: Test, running = noTurns) {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  const syncs: PromiseWithResolvers<void>[] = [];
  const startSync = () => {
    const sync = Promise.withResolvers<void>();
    syncs.push(sync);
    return sync.promise;
  };
  const writes = new GroupCommit(database, startSync, running);
  return { database, writes, syncs };
}

t.test('acknowledges a durable write when the log is synced after its commit, and other writes before', async (t) => {
  const { database, writes, syncs } = manualSyncs(t);
  t.equal(database.prepare('PRAGMA synchronous').get()?.synchronous, 1, 'NORMAL');
  const settled: string[] = [];
  const write = (name: string, kind: WriteKind) =>
    writes.write(kind, () => database.isTransaction).then((inside) => settled.push(`${name} ${inside}`));
  const first = [write('begin', 'committed'), write('commit', 'durable')];
  await groupCommitted();
  t.same(settled, ['begin true']);
  t.equal(syncs.length, 1);
  t.notOk(database.isTransaction, 'the commit comes before the sync');
  const second = [write('abandon', 'committed')];
  await groupCommitted();
  t.same(settled, ['begin true', 'abandon true']);
  t.equal(syncs.length, 1, 'nothing to sync');
  syncs[0]?.resolve();
  await Promise.all([...first, ...second]);
  t.same(settled, ['begin true', 'abandon true', 'commit true']);
});

t.test('commits and syncs the writes of a few ticks together, and at once when flushed', async (t) => {
  const { writes, syncs } = manualSyncs(t, () => GROUP_TICKS);
  const committed: number[] = [];
  const group: Promise<number>[] = [];
  for (let tick = 0; tick < GROUP_TICKS; tick++) {
    t.same(committed, []);
    group.push(writes.write('durable', () => committed.push(tick)));
    await new Promise(setImmediate);
  }
  t.same(committed, [0, 1, 2, 3]);
  t.equal(syncs.length, 1);
  syncs[0]?.resolve();
  t.same(await Promise.all(group), [1, 2, 3, 4]);
  const last = writes.write('durable', () => 3);
  writes.flush();
  t.equal(syncs.length, 2);
  syncs[1]?.resolve();
  t.equal(await last, 3);
  await groupCommitted();
  t.equal(syncs.length, 2);
});

t.test('waits a few ticks more with the sync while other turns run', async (t) => {
  let running = 3;
  const { writes, syncs } = manualSyncs(t, () => running);
  const committed: number[] = [];
  const write = (n: number) => writes.write('durable', () => committed.push(n));
  const first = write(1);
  await groupCommitted();
  t.same(committed, [1]);
  const second = write(2);
  t.equal(syncs.length, 0);
  for (let tick = 0; tick < SYNC_TICKS; tick++) await new Promise(setImmediate);
  t.same([committed, syncs.length], [[1, 2], 1], 'the third turn does not end');
  const third = write(3);
  running = 1;
  await groupCommitted();
  t.equal(syncs.length, 2, 'no other turn runs');
  for (const sync of syncs) sync.resolve();
  t.same(await Promise.all([first, second, third]), [1, 2, 3]);
});

t.test('a commit does not wait for turns that could not begin', async (t) => {
  const { store, database, close } = openStore(t.testdir());
  t.teardown(close);
  // Each row of a turn is accepted by its INSERT and refused by the COMMIT.
  database.exec(`PRAGMA foreign_keys = ON;
    CREATE TABLE part (id INTEGER PRIMARY KEY, whole REFERENCES part (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER refused AFTER INSERT ON turn BEGIN INSERT INTO part (whole) VALUES (99); END`);
  const begun = ['turn_1', 'turn_2'].map((turnId) => store.begin(ANNA, { turnId, input: turn(1) }));
  for (const result of await Promise.allSettled(begun)) t.match(result, { reason: { message: /FOREIGN KEY/ } });

  const scheduled = t.capture(globalThis, 'setImmediate', setImmediate);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  t.equal(scheduled().length, 1, 'no further ticks before the commit and the sync');
});

t.test('rejects durable writes whose sync fails', async (t) => {
  const { writes, syncs } = manualSyncs(t);
  const results = Promise.allSettled([
    writes.write('durable', () => 1),
    writes.write('committed', () => 2),
    writes.write('durable', () => 3),
  ]);
  await groupCommitted();
  syncs[0]?.reject(new Error('EIO'));
  t.match(await results, [{ reason: { message: 'EIO' } }, { value: 2 }, { reason: { message: 'EIO' } }]);
});

t.test('syncs the log again for a commit that came during a sync', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  const log = new LogSync(database.location() ?? '');
  const [first, second, third] = [log.sync(), log.sync(), log.sync()];
  t.not(first, second, 'the running sync may have begun before the commit');
  t.equal(second, third);
  await Promise.all([first, second, third, log.sync()]);
  await log.close();
});

t.test('rolls back a job that fails half-way', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  database.exec('CREATE TABLE list (n INTEGER)');
  const writes = new GroupCommit(database, async () => {}, noTurns);
  const add = (n: number) => database.prepare('INSERT INTO list VALUES (?)').run(n);
  const results = await Promise.allSettled([
    writes.write('durable', () => add(1)),
    writes.write('durable', () => {
      add(2);
      throw new Error('half-way');
    }),
    writes.write('durable', () => add(3)),
  ]);
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  t.same(
    database
      .prepare('SELECT n FROM list')
      .all()
      .map(({ n }) => n),
    [1, 3],
  );
});

t.test('rejects every write if no transaction can begin', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  const writes = new GroupCommit(database, async () => {}, noTurns);
  database.exec('BEGIN');
  const results = await Promise.allSettled([1, 2].map((n) => writes.write('durable', () => n)));
  t.match(results, [{ reason: /within a transaction/ }, { reason: /within a transaction/ }]);
});

t.test('runs a single statement without a transaction around it if it is alone in its group', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  const writes = new GroupCommit(database, async () => {}, noTurns);
  const write = () => writes.write('statement', () => database.isTransaction);
  t.equal(await write(), false);
  t.same(await Promise.all([write(), write()]), [true, true]);
  const failure = new Error('refused');
  await t.rejects(
    writes.write('statement', () => {
      throw failure;
    }),
    failure,
  );
});
