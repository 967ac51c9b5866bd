import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { openDatabase } from '../src/database/open-database.js';
import { ANNA, loaded, openStore, turn } from './open-store.js';

const CHILD = fileURLToPath(new URL('fixtures/holding.mjs', import.meta.url));

/** An unprivileged user, for tests that run as root. */
const UNPRIVILEGED = 65_534;

/** Returns a file with one turn that no store has open. */
async function fileWithOneTurn(folder: string): Promise<string> {
  const { store, path } = openStore(folder);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
  return path;
}

function change(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

/** Runs as a user to whom file permissions apply. */
function unprivileged<T>(work: () => T): T {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(UNPRIVILEGED);
  try {
    return work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

function giveAway(path: string): void {
  if (process.geteuid?.() === 0) chownSync(path, UNPRIVILEGED, UNPRIVILEGED);
}

t.test('refuses a second process until the first is killed', async (t) => {
  const folder = t.testdir();
  const first = fork(CHILD, [join(folder, 'sessions.db')], { execArgv: [] });
  t.same(await once(first, 'message'), ['open', undefined]);
  const path = join(folder, 'sessions.db');
  t.throws(() => openStore(folder), {
    code: 'locked',
    message: `${path} is in use by another process: one SQLite file serves one server at a time. Stop the other one, or give each its own \`path\` (SQLite 5: database is locked)`,
  });
  first.kill('SIGKILL');
  await once(first, 'exit');
  const { store } = openStore(folder);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
});

t.test('refuses a second store of the same process; the first continues', async (t) => {
  const folder = t.testdir();
  const { store } = openStore(folder);
  t.throws(() => openStore(folder), { code: 'locked' });
  const other = fork(CHILD, [join(folder, 'sessions.db')], { execArgv: [] });
  t.match(await once(other, 'message'), [/is in use by another process/], 'the lock is still held');
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
});

t.test('does not change a file of a newer schema', async (t) => {
  const path = await fileWithOneTurn(t.testdir());
  change(path, 'PRAGMA user_version = 99');
  const before = readFileSync(path);
  t.throws(() => openDatabase(path), {
    code: 'newer_schema',
    message: /was written by a newer version of this plugin \(schema 99; this version supports up to \d+\) and was not changed/,
  });
  t.ok(before.equals(readFileSync(path)));
});

t.test("does not change another program's file", async (t) => {
  const path = join(t.testdir(), 'other.db');
  change(path, 'CREATE TABLE invoice (number INTEGER)');
  for (const sql of ['PRAGMA user_version = 0', 'PRAGMA user_version = 1']) {
    change(path, sql);
    const before = readFileSync(path);
    t.throws(() => openDatabase(path), { code: 'foreign_file', message: /is a SQLite file of another program/ }, sql);
    t.ok(before.equals(readFileSync(path)));
  }
});

t.test('opens an empty file and an existing one', async (t) => {
  const folder = t.testdir({ 'sessions.db': '' });
  const path = await fileWithOneTurn(folder);
  const { store } = openStore(folder);
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) });
  store.stop();
  const { database, opening } = openDatabase(path);
  t.equal(opening, 3);
  database.close();
});

t.test('refuses a file that is not SQLite and one with a damaged schema', async (t) => {
  const text = join(t.testdir({ 'sessions.db': 'Dear diary, '.repeat(500) }), 'sessions.db');
  t.throws(() => openDatabase(text), { code: 'corrupt', message: /is not a SQLite file: restore a backup, or set `path`/ });
  t.match(readFileSync(text, 'utf8'), /^Dear diary/);

  const path = await fileWithOneTurn(t.testdir());
  const bytes = readFileSync(path);
  bytes.fill(0xff, 100, 400); // the head of the first tree
  writeFileSync(path, bytes);
  t.throws(() => openDatabase(path), { code: 'corrupt', message: /is damaged: stop the server and restore a backup/ });
});

t.test('refuses a file with a missing table and releases it', async (t) => {
  const folder = t.testdir();
  const path = await fileWithOneTurn(folder);
  change(path, 'DROP TABLE pending_tool_call_key');
  const started = () => openStore(folder);
  t.throws(started, { code: 'sqlite', message: /does not have the expected content.+no such table: pending_tool_call_key/ });
  t.throws(started, { code: 'sqlite' }, 'not locked');
});

t.test('names the reason if the file or its folder cannot be used', async (t) => {
  // Outside the checkout, which may be in a folder that only its owner can enter.
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'file'), '');
  t.throws(() => openDatabase(join(folder, 'file', 'sessions.db')), {
    code: 'cannot_open',
    message: /^the folder .+ cannot be created \(E/,
  });
  t.throws(() => openDatabase(folder), {
    code: 'cannot_open',
    message: /cannot be opened: give the server's user read and write access/,
  });

  const closed = join(folder, 'closed');
  mkdirSync(closed, { mode: 0o755 });
  chmodSync(closed, 0o555);
  unprivileged(() => {
    t.throws(() => openDatabase(join(closed, 'sessions.db')), {
      code: 'cannot_open',
      message: /sessions\.db cannot be created \(EACCES.+give the server's user write access to its folder/,
    });
    t.throws(() => openDatabase(join(closed, 'data', 'sessions.db')), {
      code: 'cannot_open',
      message: /^the folder .+ cannot be created \(EACCES/,
    });
  });

  const path = await fileWithOneTurn(join(folder, 'read-only'));
  const before = readFileSync(path);
  giveAway(path);
  chmodSync(join(folder, 'read-only'), 0o777);
  chmodSync(path, 0o444);
  unprivileged(() =>
    t.throws(() => openDatabase(path), {
      code: 'read_only',
      message: /cannot be locked for writing: give the server's user write access/,
    }),
  );
  t.ok(before.equals(readFileSync(path)));
});
