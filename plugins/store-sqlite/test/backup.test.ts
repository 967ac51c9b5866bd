import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { checkOptions, eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { ANNA, DAY, HOUR, loaded, openStore, session, turn } from './open-store.js';

/** A store with a backup every six hours. */
function openWithBackup(t: Test, folder = t.testdir()) {
  const path = join(folder, 'backup', 'copy.db');
  const opened = openStore(folder, { clock: new ManualClock(Date.now()), backup: { path, every: 6 * HOUR } });
  t.teardown(() => opened.close());
  const backups = (message = 'backed up the sessions') => opened.logs.filter(({ msg }) => msg === message).length;
  return { ...opened, backup: path, backups, folder };
}

t.test('backs up the file at the start and then regularly, with what was written meanwhile', async (t) => {
  const { store, clock, backup, backups, folder } = openWithBackup(t);
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  clock.advance(0);
  await eventually(() => backups() === 1);
  t.equal(statSync(backup).mode & 0o777, 0o600);
  t.equal(statSync(join(backup, '..')).mode & 0o777, 0o700);

  await store.commit(ANNA, { expected: 1, messages: turn(2) });
  await store.state.change([{ entry: 'plugins.pager', key: 'offset', text: '7' }]);
  clock.advance(6 * HOUR - 1);
  t.equal(backups(), 1);
  clock.advance(1);
  await eventually(() => backups() === 2);

  const restored = join(folder, 'restored');
  mkdirSync(restored);
  copyFileSync(backup, join(restored, 'sessions.db'));
  const again = openStore(restored, { clock: new ManualClock(Date.now()) });
  t.teardown(() => again.close());
  t.strictSame(await loaded(again.store, ANNA), { version: 2, messages: [...turn(1), ...turn(2)] });
  t.equal(await again.store.state.get('plugins.pager', 'offset'), '7', 'with the state of plugins');
  t.strictSame(readdirSync(join(backup, '..')), ['copy.db'], 'one file, without a log of its own');
});

t.test('a backup is whole while many turns are written', async (t) => {
  const { store, clock, backup, backups } = openWithBackup(t);
  const large = 'x'.repeat(100_000);
  for (let n = 0; n < 60; n++) await store.commit(session(`s${n}`), { expected: 0, messages: turn(1, large) });
  clock.advance(0);
  let written = 0;
  while (backups() === 0) {
    await store.commit(ANNA, { expected: written, messages: turn(written + 1) });
    written++;
  }
  const copy = new DatabaseSync(backup, { readOnly: true });
  t.teardown(() => copy.close());
  t.equal(copy.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
  t.equal(copy.prepare('SELECT count(*) AS count FROM message WHERE length(body) > 100000').get()?.count, 60);
  t.ok(written > 0, 'turns were stored meanwhile');
  t.match(await loaded(store, ANNA), { version: written });
});

t.test('a recent backup is not made again at the next start', async (t) => {
  const first = openWithBackup(t);
  first.clock.advance(0);
  await eventually(() => first.backups() === 1);
  first.close();
  const next = openWithBackup(t, first.folder);
  next.clock.advance(5 * HOUR);
  t.equal(next.clock.pending > 0, true);
  t.equal(next.backups(), 0);
  next.clock.advance(HOUR);
  await eventually(() => next.backups() === 1);
});

t.test('a failed backup is logged, keeps the previous one, and is tried again', async (t) => {
  const folder = t.testdir({ backup: 'a file where the folder should be' });
  const { clock, logs, backups } = openWithBackup(t, folder);
  clock.advance(0);
  await eventually(() => backups('could not back up the sessions; will retry') === 1);
  t.match(
    logs.find(({ level }) => level === 'error'),
    { path: join(folder, 'backup', 'copy.db'), err: { code: /ENOTDIR|EEXIST/ } },
  );
  t.equal(readFileSync(join(folder, 'backup'), 'utf8'), 'a file where the folder should be');
  clock.advance(10 * 60_000);
  await eventually(() => backups('could not back up the sessions; will retry') === 2);
});

t.test('the lock of the file is kept while it is copied and after', async (t) => {
  const { clock, backups, path } = openWithBackup(t);
  clock.advance(0);
  await eventually(() => backups() === 1);
  const read = `new (require('node:sqlite').DatabaseSync)(${JSON.stringify(path)}).prepare('SELECT count(*) FROM session').get()`;
  const other = spawnSync(process.execPath, ['-e', read], { encoding: 'utf8' });
  t.equal(other.status, 1);
  t.match(other.stderr, 'database is locked');
});

t.test('a long interval is waited for, and a store that stops makes no backup', async (t) => {
  const folder = t.testdir({ 'copy.db': '' });
  const path = join(folder, 'copy.db');
  writeFileSync(path, 'old');
  const clock = new ManualClock(Date.now());
  const { logs, close } = openStore(folder, { clock, backup: { path, every: 90 * DAY } });
  for (let day = 0; day < 89; day++) clock.advance(DAY);
  t.strictSame(logs, []);
  clock.advance(2 * DAY); // the backup begins
  close();
  await eventually(() => !existsSync(`${path}.tmp`));
  t.equal(readFileSync(path, 'utf8'), 'old');
  t.strictSame(logs, []);
  t.equal(clock.pending, 0);
});

t.test('refuses a backup onto the file itself, or too often', async (t) => {
  const faults = (backup: object) => checkOptions(plugin, { path: './data/sessions.db', backup }).faults;
  t.strictSame(faults({ path: 'data/../data/sessions.db' }), ['backup.path: is the database file itself; name another file']);
  t.strictSame(faults({ path: './data/copy.db', every: '30s' }), ['backup.every: must be at least 1m']);
  t.strictSame(faults({ path: './data/copy.db' }), []);
});
