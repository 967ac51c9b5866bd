import type { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { ANNA, kept, openStore, session, turn } from './opened.js';

/** Lets the file grow by so many pages and no further, as a full disk would. */
function leaveRoom(database: DatabaseSync, pages: number): void {
  const { page_count } = database.prepare('PRAGMA page_count').get() as { page_count: number };
  database.exec(`PRAGMA max_page_count = ${page_count + pages}`);
}

function makeRoom(database: DatabaseSync): void {
  database.exec('PRAGMA max_page_count = 1000000');
}

const LARGE = 'x'.repeat(500_000);

t.test('R-070 on a full disk a turn fails, reads go on, and all is well by itself when there is room again', async (t) => {
  const { store, database, clock, logs, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  leaveRoom(database, 2);

  await store.begin(ANNA, { turnId: 'turn_2', input: turn(2) });
  await t.rejects(store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2, LARGE) }), {
    code: 'disk_full',
    message:
      /sessions\.db has no room to grow, for the disk is full: make room there\. What was kept can still be read \(SQLite 13/,
  });
  t.same(await kept(store, ANNA), { version: 1, messages: turn(1) });
  t.equal(await store.version(ANNA), 1);
  t.match(await store.health(), { ok: false, reason: /the disk is full/ });
  clock.advance(2_000);
  t.match(await store.health(), { ok: false }, 'it looks, and there is still none');
  t.match(logs, [{ level: 'error', msg: 'the session store cannot work', err: { code: 'disk_full' } }]);

  makeRoom(database);
  t.match(await store.health(), { ok: false }, 'it does not look at every question');
  clock.advance(2_000);
  t.same(await store.health(), { ok: true });
  t.match(logs.slice(1), [{ level: 'info', msg: 'the session store works again' }]);
  await store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2, LARGE) });
  t.same(await kept(store, ANNA), { version: 2, messages: [...turn(1), ...turn(2, LARGE)] });
  t.same(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
});

t.test('a turn for which there is no room does not cost the others theirs that are written with it', async (t) => {
  const { store, database, close } = openStore(t.testdir());
  t.teardown(close);
  leaveRoom(database, 8);
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

t.test('a damaged page fails what stands on it, and the store says that it is not well for good', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  // The tree of the messages is another's from now on: what SQLite finds there is not what the schema says.
  database.enableDefensive(false);
  database.exec(`PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'probe') WHERE name = 'message'`);
  database.exec('PRAGMA writable_schema = RESET');
  await t.rejects(store.load(ANNA), { code: 'corrupt', message: /is damaged: stop the server and restore a backup/ });
  clock.advance(10_000);
  t.match(await store.health(), { ok: false, reason: /is damaged/ });
});
