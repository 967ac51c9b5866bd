import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';
import { freePort, programMissing, realPostgres } from './real-postgres.js';

const PROGRAM = '/usr/sbin/pgbouncer';
if (!existsSync(PROGRAM)) throw programMissing('PgBouncer', 'pgbouncer');

/** A PgBouncer in transaction mode in front of PostgreSQL. */
export async function startPgBouncer(t: Test) {
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
  return { url: through.href, port, restart };
}
