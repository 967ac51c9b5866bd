import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { openFile } from '../src/open-file.js';
import { ANNA, kept, openStore, turn } from './opened.js';

const CHILD = fileURLToPath(new URL('fixtures/holding.mjs', import.meta.url));

/** Whom a superuser becomes to be refused anything. */
const NOBODY = 65_534;

/** A file that a store has been at, closed. */
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

/** Runs as a user whom file permissions bind. */
function unprivileged<T>(work: () => T): T {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

function giveAway(path: string): void {
  if (process.geteuid?.() === 0) chownSync(path, NOBODY, NOBODY);
}

t.test('refuses a second process, and is free as soon as the first was killed', async (t) => {
  const folder = t.testdir();
  const first = fork(CHILD, [join(folder, 'sessions.db')], { execArgv: [] });
  t.same(await once(first, 'message'), ['open', undefined]);
  const path = join(folder, 'sessions.db');
  t.throws(() => openStore(folder), {
    code: 'locked',
    message: `${path} is in use by another process: one SQLite file serves one server at a time. Stop the other one, or give each a \`path\` of its own (SQLite 5: database is locked)`,
  });
  first.kill('SIGKILL');
  await once(first, 'exit');
  const { store } = openStore(folder);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
});

t.test('refuses a second store of the same process, and the first goes on', async (t) => {
  const folder = t.testdir();
  const { store } = openStore(folder);
  t.throws(() => openStore(folder), { code: 'locked' });
  const other = fork(CHILD, [join(folder, 'sessions.db')], { execArgv: [] });
  t.match(await once(other, 'message'), [/is in use by another process/], 'the lock is still there');
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  store.stop();
});

t.test('leaves a file of a newer schema as it is', async (t) => {
  const path = await fileWithOneTurn(t.testdir());
  change(path, 'PRAGMA user_version = 99');
  const before = readFileSync(path);
  t.throws(() => openFile(path), {
    code: 'newer_schema',
    message: /was written by a newer version of this plugin \(schema 99; this one knows up to 3\), and was left as it is/,
  });
  t.ok(before.equals(readFileSync(path)));
});

t.test("leaves another program's file as it is", async (t) => {
  const path = join(t.testdir(), 'other.db');
  change(path, 'CREATE TABLE invoice (number INTEGER)');
  for (const sql of ['PRAGMA user_version = 0', 'PRAGMA user_version = 1']) {
    change(path, sql);
    const before = readFileSync(path);
    t.throws(() => openFile(path), { code: 'foreign_file', message: /is a SQLite file of another program/ }, sql);
    t.ok(before.equals(readFileSync(path)));
  }
});

t.test('goes on with an empty file, and with one that is there', async (t) => {
  const folder = t.testdir({ 'sessions.db': '' });
  const path = await fileWithOneTurn(folder);
  const { store } = openStore(folder);
  t.same(await kept(store, ANNA), { version: 1, messages: turn(1) });
  store.stop();
  const { database, opening } = openFile(path);
  t.equal(opening, 3);
  database.close();
});

t.test('refuses what is no SQLite file, and one whose schema is damaged', async (t) => {
  const text = join(t.testdir({ 'sessions.db': 'Dear diary, '.repeat(500) }), 'sessions.db');
  t.throws(() => openFile(text), { code: 'corrupt', message: /is no SQLite file: restore a backup, or set `path`/ });
  t.match(readFileSync(text, 'utf8'), /^Dear diary/);

  const path = await fileWithOneTurn(t.testdir());
  const bytes = readFileSync(path);
  bytes.fill(0xff, 100, 400); // the head of the first tree
  writeFileSync(path, bytes);
  t.throws(() => openFile(path), { code: 'corrupt', message: /is damaged: stop the server and restore a backup/ });
});

t.test('refuses a file in which something is missing, and lets go of it', async (t) => {
  const folder = t.testdir();
  const path = await fileWithOneTurn(folder);
  change(path, 'DROP TABLE parked_key');
  const started = () => openStore(folder);
  t.throws(started, { code: 'sqlite', message: /is not as this plugin left it.+no such table: parked_key/ });
  t.throws(started, { code: 'sqlite' }, 'not locked');
});

t.test('says what stands in the way of the file or its folder', async (t) => {
  // Not below the checkout: that may be in a folder that only its owner can enter.
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'file'), '');
  t.throws(() => openFile(join(folder, 'file', 'sessions.db')), {
    code: 'cannot_open',
    message: /^the folder .+ cannot be made \(E/,
  });
  t.throws(() => openFile(folder), { code: 'cannot_open', message: /cannot be opened: let the server's user read and write/ });

  const closed = join(folder, 'closed');
  mkdirSync(closed, { mode: 0o755 });
  chmodSync(closed, 0o555);
  unprivileged(() => {
    t.throws(() => openFile(join(closed, 'sessions.db')), {
      code: 'cannot_open',
      message: /sessions\.db cannot be made \(EACCES.+let the server's user write to its folder/,
    });
    t.throws(() => openFile(join(closed, 'data', 'sessions.db')), {
      code: 'cannot_open',
      message: /^the folder .+ cannot be made \(EACCES/,
    });
  });

  const path = await fileWithOneTurn(join(folder, 'read-only'));
  const before = readFileSync(path);
  giveAway(path);
  chmodSync(join(folder, 'read-only'), 0o777);
  chmodSync(path, 0o444);
  unprivileged(() =>
    t.throws(() => openFile(path), { code: 'read_only', message: /cannot be locked for writing: let the server's user write/ }),
  );
  t.ok(before.equals(readFileSync(path)));
});
