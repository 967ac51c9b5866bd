import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { Plugboard } from '../../cli/test/plugboard.js';
import { Database, type DatabaseOptions } from '../src/database/database.js';
import { PostgresStore } from '../src/postgres-store.js';
import { DAY, newSchema, openStore, SYSTEM_CLOCK } from './open-store.js';
import { freePort, realPostgres } from './real-postgres.js';

const failing = async (t: Test, settings: Parameters<typeof openStore>[0], expected: { code: string; message: RegExp }) => {
  const error: unknown = await openStore({ clock: SYSTEM_CLOCK, ...settings }).catch((thrown: unknown) => thrown);
  t.match(error, expected);
  t.notMatch(String(error), /s3cret|wrong word|\n/, 'one line, without the password');
};

t.test('PG-30 names the reason if the database cannot be used', async (t) => {
  const { url, query, createDatabase } = await realPostgres();
  const wrong = new URL(url());
  wrong.password = 'wrong word';
  await failing(
    t,
    { url: wrong.href },
    { code: 'refused', message: /^PostgreSQL at 127\.0\.0\.1:\d+ refuses the user "test": check the user, the password/ },
  );
  await failing(
    t,
    { url: url('missing') },
    { code: 'refused', message: /has no database "missing": create it, or correct `url`/ },
  );

  const name = await createDatabase();
  await query(`CREATE ROLE guest LOGIN PASSWORD 's3cret'; REVOKE CREATE ON DATABASE ${name} FROM PUBLIC`);
  const guest = new URL(url(name));
  guest.username = 'guest';
  guest.password = 's3cret';
  const noRight =
    /^the user "guest" may not use the schema "ours" of the database "test_\d+": as an administrator, run CREATE SCHEMA "ours" AUTHORIZATION "guest"; or GRANT CREATE ON DATABASE "test_\d+" TO "guest";/;
  await failing(t, { url: guest.href, schema: 'ours' }, { code: 'refused', message: noRight });
  await query('CREATE SCHEMA ours AUTHORIZATION guest', [], name);
  const { store } = await openStore({ url: guest.href, schema: 'ours' });
  await store.stop();

  await query('CREATE SCHEMA shop; CREATE TABLE shop.meta (version integer)', [], name);
  await failing(
    t,
    { url: url(name), schema: 'shop' },
    { code: 'foreign_schema', message: /^the schema "shop" has tables of another program and was not changed/ },
  );
  await query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
  await failing(
    t,
    { url: url('latin') },
    { code: 'unsupported', message: /^the database has the encoding LATIN1: create it with ENCODING 'UTF8'/ },
  );
});

/** A server that says that it is an old one. */
class OldDatabase extends Database {
  protected override named(text: string): string {
    return super
      .named(text)
      .replace("current_setting('server_version_num')", "'130016'")
      .replace("current_setting('server_version')", "'13.16'");
  }
}

t.test('PG-30 refuses a PostgreSQL older than 14', async (t) => {
  const { url } = await realPostgres();
  const quotas = { maxSessions: 1, maxBytes: 1 };
  const log = { info() {}, warn() {}, error() {} } as never;
  const options = { url: url(), schema: newSchema(), poolSize: 1, lease: 5_000, ttl: DAY, quotas, clock: SYSTEM_CLOCK, log };
  const store = new PostgresStore(options, (given: DatabaseOptions) => new OldDatabase(given));
  await t.rejects(store.start(), { code: 'unsupported', message: 'PostgreSQL 13.16 is too old: version 14 or newer is needed' });
  await store.stop();
});

const YAML = (port: number) => `
transports: { http: { port: 0 }, chat-completions: {}, health: {} }
models: { demo: {} }
agents: { assistant: { model: demo } }
sessions: { use: postgres, url: "\${DATABASE_URL}", schema: s_${port} }
`;

/** Starts the program over a database. */
function program(t: Test, command: string, url: string): Plugboard {
  const folder = t.testdir({ 'plugboard.yaml': YAML(process.pid) });
  return new Plugboard(t, [command], { cwd: folder, env: { DATABASE_URL: url } });
}

t.test('PG-30 `plugboard start` ends with exit code 1 and one line, and `plugboard check` opens nothing', async (t) => {
  const { url } = await realPostgres();
  const wrong = new URL(url());
  wrong.password = 'wrong-word';
  const started = program(t, 'start', wrong.href);
  t.equal(await started.exit(), 1);
  const told = started.stdout + started.stderr;
  t.match(told, /sessions did not start: PostgreSQL at 127\.0\.0\.1:\d+ refuses the user ./);
  t.notMatch(told, 'wrong-word');
  const checked = program(t, 'check', `postgres://nobody@127.0.0.1:${await freePort()}/nothing`);
  t.equal(await checked.exit(), 0, checked.stderr);
});

t.test('a server on PostgreSQL answers, and is ready again after a restart of the database', async (t) => {
  const postgres = await realPostgres();
  const server = program(t, 'start', postgres.url());
  await server.prints('curl ');
  const address = /^ {2}address +(http:\/\/127\.0\.0\.1:\d+)$/m.exec(server.stdout)?.[1] ?? '';
  const chat = async () => {
    const body = JSON.stringify({ model: 'assistant', session_id: 'anna', messages: [{ role: 'user', content: 'Hi' }] });
    return (
      await fetch(`${address}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    ).status;
  };
  const isReady = async () => (await fetch(`${address}/readyz`)).status === 200;
  t.equal(await chat(), 200);
  postgres.stop('fast');
  await eventually(async () => !(await isReady()));
  const status = await fetch(`${address}/v1/status`);
  const { entries } = (await status.json()) as { readonly entries: readonly { readonly entry: string }[] };
  const sessions = entries.find(({ entry }) => entry === 'sessions');
  t.match(sessions, { status: 'running', health: 'failed', reason: /^PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached/ });
  postgres.start();
  await eventually(isReady);
  t.equal(await chat(), 200);
  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
  t.strictSame(await postgres.query(`SELECT version::int FROM "s_${process.pid}".session`), [{ version: 2 }]);
});
