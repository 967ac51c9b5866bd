import { statSync } from 'node:fs';
import { join } from 'node:path';
import { VersionConflict } from '@plugboard/kernel/contracts';
import t from 'tap';
import { GroupCommit } from '../src/database/group-commit.js';
import { openDatabase } from '../src/database/open-database.js';
import { ANNA, loaded, openStore, session, turn } from './open-store.js';

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

t.test('syncs to disk only what must survive a power failure', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  const writes = new GroupCommit(database);
  const level = () => database.prepare('PRAGMA synchronous').get()?.synchronous;
  const [NORMAL, FULL] = [1, 2];
  t.equal(await writes.write(false, level), NORMAL);
  t.equal(await writes.write(true, level), FULL);
  t.same(await Promise.all([writes.write(false, level), writes.write(true, level)]), [FULL, FULL]);
  t.equal(await writes.write(false, level), NORMAL);
});

t.test('rolls back a job that fails half-way', async (t) => {
  const { database } = openDatabase(join(t.testdir(), 'sessions.db'));
  t.teardown(() => database.close());
  database.exec('CREATE TABLE list (n INTEGER)');
  const writes = new GroupCommit(database);
  const add = (n: number) => database.prepare('INSERT INTO list VALUES (?)').run(n);
  const results = await Promise.allSettled([
    writes.write(true, () => add(1)),
    writes.write(true, () => {
      add(2);
      throw new Error('half-way');
    }),
    writes.write(true, () => add(3)),
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
  const writes = new GroupCommit(database);
  database.exec('BEGIN');
  const results = await Promise.allSettled([1, 2].map((n) => writes.write(true, () => n)));
  t.match(results, [{ reason: /within a transaction/ }, { reason: /within a transaction/ }]);
});
