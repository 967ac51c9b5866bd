import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, ManualClock, type StoreQuotas, sessionStoreContract } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { acquire, loaded, openStore, SYSTEM_CLOCK, session, turn, wipe } from './open-store.js';
import { freePort, programMissing, realPostgres } from './real-postgres.js';

const PROGRAM = '/usr/sbin/pgbouncer';
if (!existsSync(PROGRAM)) throw programMissing('PgBouncer', 'pgbouncer');

/** A PgBouncer in transaction mode in front of PostgreSQL. */
async function pooler(t: Test) {
  const { port: target, url, account } = await realPostgres();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-pgbouncer-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const { password, username } = new URL(url());
  writeFileSync(join(folder, 'users'), `"${username}" "${decodeURIComponent(password)}"\n`);
  writeFileSync(
    join(folder, 'ini'),
    `[databases]\n* = host=127.0.0.1 port=${target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\n` +
      `auth_type = scram-sha-256\nauth_file = ${folder}/users\npool_mode = transaction\ndefault_pool_size = 3\n` +
      `max_client_conn = 200\nunix_socket_dir =\n`,
  );
  const { uid, gid } = account;
  if (uid !== undefined && gid !== undefined) for (const name of ['', 'users', 'ini']) chownSync(join(folder, name), uid, gid);
  const launch = async () => {
    const child = spawn(PROGRAM, [join(folder, 'ini')], { ...account, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    let told = '';
    child.stderr.on('data', (data) => {
      told += data;
    });
    await eventually(() => told.includes('process up'));
    return child;
  };
  let child = await launch();
  const stop = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  t.teardown(stop);
  const through = new URL(url());
  through.port = String(port);
  const restart = async () => {
    await stop();
    child = await launch();
  };
  return { url: through.href, restart };
}

t.test('PG-2 fulfils the session store contract behind PgBouncer in transaction mode', async (t) => {
  const { url } = await pooler(t);
  const clock = new ManualClock();
  const { schema, close } = await openStore({ clock });
  await close();
  const openAgain = (settings: Parameters<typeof openStore>[0] = {}) => openStore({ clock, url, schema, ...settings });
  const open = async (settings?: Parameters<typeof openStore>[0]) => {
    await wipe(schema);
    return openAgain(settings);
  };
  const reopen = async (opened: { close?(): unknown }) => {
    await opened.close?.();
    return openAgain();
  };
  const openTwo = async () => {
    const one = await openStore({ clock: SYSTEM_CLOCK, url });
    return [one, await openStore({ clock: SYSTEM_CLOCK, url, schema: one.schema })] as const;
  };
  const openLimited = (quotas: StoreQuotas) => open({ quotas });
  sessionStoreContract(t.test, { open: () => open(), clock, reopen, openLimited, openTwo });
});

t.test('PG-1 no notification comes through PgBouncer in transaction mode, and `listenUrl` leads past it', async (t) => {
  const { url: listenUrl } = await realPostgres();
  const { url } = await pooler(t);
  const through = await openStore({ url, clock: SYSTEM_CLOCK });
  t.teardown(through.close);
  const warnings = () => through.logs.filter(({ level }) => level === 'warn');
  await eventually(() => warnings().length > 0);
  t.match(warnings(), [{ msg: /Behind a pooler in transaction mode, set `listenUrl` to the address of PostgreSQL itself/ }]);
  const past = await openStore({ url, listenUrl: listenUrl(), clock: SYSTEM_CLOCK, schema: through.schema });
  t.teardown(past.close);
  await acquire(through.store, 'turn_1');
  const waiting = acquire(past.store, 'turn_2');
  await eventually(async () => (await past.rows('turn')) === 2);
  await through.store.abandon(session('anna'), 'turn_1');
  t.equal((await waiting).isHeld, true);
  t.notOk(past.logs.some(({ level }) => level === 'warn'));
});

t.test('PG-2 PG-7 turns go on behind a PgBouncer that is restarted', async (t) => {
  const { url, restart } = await pooler(t);
  const { store, close } = await openStore({ url, clock: SYSTEM_CLOCK, poolSize: 10 });
  t.teardown(close);
  const run = async (key: string) => {
    for (let n = 0; n < 20; n++) {
      const turnId = `turn_${key}_${n}`;
      await store.begin(session(key), { turnId, input: turn(n) });
      await store.commit(session(key), { turnId, expected: n, messages: turn(n) });
    }
  };
  const keys = Array.from({ length: 20 }, (_, n) => `s${n}`);
  const turns = Promise.all(keys.map(run));
  for (let n = 0; n < 3; n++) {
    await eventually(async () => (await store.version(session('s0'))) > 4 * n);
    await restart();
  }
  await turns;
  const all = Array.from({ length: 20 }, (_, n) => turn(n)).flat();
  for (const key of keys) t.same(await loaded(store, session(key)), { version: 20, messages: all });
});
