import type { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { ANNA, loaded, openStore, session, turn } from './open-store.js';

/** Lets the file grow by a number of pages, then fails like a full disk. */
function limitSpace(database: DatabaseSync, pages: number): void {
  const { page_count } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  database.exec(`PRAGMA max_page_count = ${page_count + pages}`);
}

function freeSpace(database: DatabaseSync): void {
  database.exec('PRAGMA max_page_count = 1000000');
}

const LARGE = 'x'.repeat(500_000);

t.test('R-070 on a full disk turns fail, reads continue, and the store recovers by itself when there is space', async (t) => {
  const { store, database, clock, logs, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  limitSpace(database, 2);

  await store.begin(ANNA, { turnId: 'turn_2', input: turn(2) });
  await t.rejects(store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2, LARGE) }), {
    code: 'disk_full',
    message: /sessions\.db cannot grow because the disk is full: free some space\. What is stored can still be read \(SQLite 13/,
  });
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) });
  t.equal(await store.version(ANNA), 1);
  t.match(await store.health(), { ok: false, reason: /the disk is full/ });
  clock.advance(2_000);
  t.match(await store.health(), { ok: false }, 'it probes and there is still no space');
  t.match(logs, [{ level: 'error', msg: 'the session store does not work', err: { code: 'disk_full' } }]);

  freeSpace(database);
  t.match(await store.health(), { ok: false }, 'it does not probe at every query');
  clock.advance(2_000);
  t.same(await store.health(), { ok: true });
  t.match(logs.slice(1), [{ level: 'info', msg: 'the session store works again' }]);
  await store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2, LARGE) });
  t.same(await loaded(store, ANNA), { version: 2, messages: [...turn(1), ...turn(2, LARGE)] });
  t.same(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
});

t.test('a turn that does not fit on the disk does not fail others in the same group commit', async (t) => {
  const { store, database, close } = openStore(t.testdir());
  t.teardown(close);
  limitSpace(database, 8);
  const results = await Promise.allSettled(
    ['a', 'b', 'large', 'c'].map((key) =>
      store.commit(session(key), { expected: 0, messages: turn(1, key === 'large' ? LARGE : key) }),
    ),
  );
  t.same(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  );
  for (const [i, key] of ['a', 'b', 'large', 'c'].entries()) t.equal(await store.version(session(key)), i === 2 ? 0 : 1, key);
});

t.test('a damaged page fails reads and makes the store unhealthy for good', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  // Points the table at another tree, whose content contradicts the schema.
  database.enableDefensive(false);
  database.exec(`PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'probe') WHERE name = 'message'`);
  database.exec('PRAGMA writable_schema = RESET');
  await t.rejects(store.load(ANNA), { code: 'corrupt', message: /is damaged: stop the server and restore a backup/ });
  clock.advance(10_000);
  t.match(await store.health(), { ok: false, reason: /is damaged/ });
});
