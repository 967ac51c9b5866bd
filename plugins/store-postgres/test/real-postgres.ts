import { execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, globSync, mkdtempSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** A PostgreSQL of its own for the tests of this process: the machine's, on a free port. */
export interface RealPostgres {
  readonly port: number;
  /** The user that runs it, if this process is root's. */
  readonly account: ReturnType<typeof account>;
  /** Of the administrator `test`, for a database. */
  url(database?: string): string;
  /** Runs a statement as the administrator. */
  query<R extends object>(text: string, values?: unknown[], database?: string): Promise<readonly R[]>;
  /** Creates an empty database. */
  createDatabase(): Promise<string>;
  /** What PostgreSQL has logged. */
  log(): string;
  /** Stops it as a crash would, or in order, and starts it again with all it has stored. */
  stop(mode: 'immediate' | 'fast'): void;
  start(): void;
}

/** Newest first. Debian has the programs outside of PATH. */
function programs(): string {
  const found = globSync('/usr/lib/postgresql/*/bin/postgres').sort((a, b) => Number(b.split('/')[4]) - Number(a.split('/')[4]));
  const [newest] = found.length > 0 ? found : globSync('{/usr/local,/opt/homebrew,/usr}/bin/postgres');
  if (!newest) throw programMissing('PostgreSQL', 'postgresql');
  return newest.replace(/postgres$/, '');
}

/** PostgreSQL refuses to run as root. Its package makes a user for it. */
function account(): { readonly uid?: number; readonly gid?: number } {
  if (process.geteuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** `npm test` skips the file that imports this where a program is missing, but not in CI. */
export function programMissing(name: string, debianPackage: string): Error {
  const message = `these tests need ${name} on this machine: apt-get install ${debianPackage}`;
  return Object.assign(new Error(message), { code: 'PROGRAM_MISSING' });
}

const bin = programs();
let running: Promise<RealPostgres> | undefined;
let databases = 0;

/** The PostgreSQL of this process. It ends with the process, however that ends. */
export function realPostgres(): Promise<RealPostgres> {
  running ??= launch();
  return running;
}

async function launch(): Promise<RealPostgres> {
  const owner = account();
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-postgres-'));
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  const logFile = join(folder, 'log');
  const run = (program: string, args: readonly string[]) =>
    execFileSync(join(bin, program), args, { ...owner, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  // A check that costs little: the tests open many connections. Clients of the pooler use SCRAM.
  run('initdb', [
    '-D',
    data,
    '-U',
    'test',
    '-A',
    'md5',
    '--no-sync',
    '-E',
    'UTF8',
    '--locale',
    'C',
    '--pwfile',
    secret(folder, owner),
  ]);
  const port = await freePort();
  // Nothing has to survive the machine. A killed client or server loses nothing without a sync.
  const settings = [
    `-p ${port}`,
    '-c listen_addresses=127.0.0.1',
    `-c unix_socket_directories=${folder}`,
    '-c fsync=off',
    '-c max_connections=60',
  ];
  const start = () => {
    run('pg_ctl', ['-D', data, '-l', logFile, '-w', '-o', settings.join(' '), 'start']);
  };
  const stop = (mode: 'immediate' | 'fast') => {
    run('pg_ctl', ['-D', data, '-m', mode, '-w', 'stop']);
  };
  start();
  // Its input ends with this process. Then it stops the server.
  const guard = spawn(
    'sh',
    ['-c', 'cat >/dev/null; "$1/pg_ctl" -D "$2" -m immediate stop >/dev/null 2>&1; rm -rf "$3"', 'sh', bin, data, folder],
    {
      ...owner,
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  guard.unref();
  (guard.stdin as unknown as { unref(): void }).unref();
  const url = (database = 'postgres') => `postgres://test:${PASSWORD}@127.0.0.1:${port}/${database}`;
  // Keeps one connection, except to other databases.
  const pool = new pg.Pool({ connectionString: url(), max: 1, allowExitOnIdle: true });
  pool.on('error', () => {});
  const query = async <R extends object>(text: string, values: unknown[] = [], database?: string) => {
    if (database === undefined) return (await pool.query<R>(text, values)).rows;
    const client = new pg.Client({ connectionString: url(database) });
    await client.connect();
    try {
      return (await client.query<R>(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const createDatabase = async () => {
    const name = `test_${++databases}`;
    await query(`CREATE DATABASE ${name}`);
    return name;
  };
  return { port, account: owner, url, query, createDatabase, log: () => readFileSync(logFile, 'utf8'), stop, start };
}

/** Has a character that URLs encode. */
const PASSWORD = encodeURIComponent('s3cret/pass');

function secret(folder: string, { uid, gid }: ReturnType<typeof account>): string {
  const path = join(folder, 'password');
  execFileSync('sh', ['-c', 'umask 077; printf %s "$1" >"$2"', 'sh', decodeURIComponent(PASSWORD), path]);
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  return path;
}

/** A free port. The system gives connections higher ones, so nothing takes it before its server. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
