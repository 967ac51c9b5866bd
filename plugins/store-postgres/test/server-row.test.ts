import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { VersionConflict } from '@plugboard/kernel/contracts';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ANNA, endLease, HOUR, loaded, newSchema, openStore, SYSTEM_CLOCK, session, turn } from './open-store.js';
import { realPostgres } from './real-postgres.js';

const PAUSED = fileURLToPath(new URL('fixtures/paused.mjs', import.meta.url));
const EXPIRE = "UPDATE plugboard.replica SET expires_at = clock_timestamp() - interval '1 second'";

t.test('PG-4 of five servers that start at once on an empty database one migrates, and PostgreSQL logs no error', async (t) => {
  const postgres = await realPostgres();
  const url = postgres.url(await postgres.createDatabase());
  const before = postgres.log().length;
  const schema = newSchema();
  const starts = await Promise.allSettled(
    [1, 2, 3, 4, 5].map(() => openStore({ url, schema, lease: 5_000, clock: SYSTEM_CLOCK })),
  );
  const started = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  t.equal(started.length, 1);
  for (const one of started) await one.close();
  const refused = starts.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  for (const reason of refused) {
    t.match(reason, {
      code: 'in_use',
      message: /^the schema "s\w+" is in use by another server \(\S+, process \d+\): one server at a time uses a schema\. Stop/,
    });
  }
  t.notMatch(postgres.log().slice(before), /ERROR|FATAL/);
});

t.test('the schema of a killed server is free after its lease', async (t) => {
  const { query, schema, close } = await openStore({ clock: SYSTEM_CLOCK });
  await close();
  const set = "INSERT INTO plugboard.replica (name, expires_at) VALUES ('dead', clock_timestamp() + interval '1 second')";
  await query(set);
  const next = await openStore({ schema, clock: SYSTEM_CLOCK, lease: 5_000 });
  t.teardown(next.close);
  t.match(next.logs, [{ level: 'info', server: 'dead', msg: /waiting until it renews its lease or loses it/ }]);
});

t.test('PG-13 a server that has lost its lease commits nothing, also when it has a new one', async (t) => {
  const { store, query, rows, logs, close } = await openStore({ clock: SYSTEM_CLOCK, lease: 5_000 });
  t.teardown(close);
  await store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  await store.begin(session('ben'), { turnId: 'turn_2', input: turn(1) });
  await query(EXPIRE);
  const refused = { code: 'lease_ended', message: /another server may have the session: nothing was stored/ };
  await t.rejects(store.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(1) }), refused);
  await t.rejects(store.commit(session('cleo'), { expected: 0, messages: turn(1) }), refused);
  await t.rejects(store.begin(session('cleo'), { turnId: 'turn_3', input: turn(1) }), refused);
  await eventually(() => logs.some(({ msg }) => /the lease of this server had expired/.test(String(msg))));
  await t.rejects(store.commit(session('ben'), { turnId: 'turn_2', expected: 0, messages: turn(1) }), refused);
  t.strictSame([await rows('session'), await rows('message'), await rows('usage')], [0, 0, 0]);
  await store.abandon(session('ben'), 'turn_2');
  await store.begin(session('ben'), { turnId: 'turn_4', input: turn(1) });
  await store.commit(session('ben'), { turnId: 'turn_4', expected: 0, messages: turn(1) });
});

t.test('PG-13 a server whose schema another one has taken over stays not ready, and takes it back', async (t) => {
  const first = await openStore({ clock: SYSTEM_CLOCK, lease: 5_000 });
  t.teardown(first.close);
  await first.store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  await first.query('DELETE FROM plugboard.replica');
  const second = await openStore({ schema: first.schema, clock: SYSTEM_CLOCK });
  t.same(await second.store.recover(), [{ id: ANNA, turnId: 'turn_1', input: turn(1) }]);
  await second.store.commit(ANNA, { expected: 0, messages: turn(7) });
  await t.rejects(first.store.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(1) }), VersionConflict);
  await eventually(async () => !(await first.store.health()).ok);
  t.match(await first.store.health(), { ok: false, reason: /is in use by another server/ });
  await second.close();
  await eventually(async () => (await first.store.health()).ok);
  t.same(await loaded(first.store, ANNA), { version: 1, messages: turn(7) });
});

t.test('PG-13 a process that was stopped for longer than its lease commits nothing when it goes on', async (t) => {
  const { url } = await realPostgres();
  const schema = newSchema();
  const child = spawn(process.execPath, [PAUSED, url(), schema], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  let told = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    told += text;
  });
  while (!told.includes('begun')) await once(child.stdout, 'data');
  child.kill('SIGSTOP');
  await endLease(schema);
  const { store, close } = await openStore({ schema, clock: SYSTEM_CLOCK });
  t.teardown(close);
  t.equal((await store.recover()).length, 2);
  await store.commit(ANNA, { expected: 0, messages: turn(7) });
  child.stdin.write('go on\n');
  child.kill('SIGCONT');
  await once(child, 'close');
  t.equal(told, 'begun\nanna VersionConflict\nben lease_ended\n');
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(7) });
  t.equal(await store.version(session('ben')), 0);
});

t.test("PG-26 a server whose clock is an hour off uses the database's times, and warns", async (t) => {
  for (const ahead of [HOUR, -HOUR]) {
    const clock = { ...SYSTEM_CLOCK, now: () => Date.now() + ahead };
    const { store, logs, close } = await openStore({ clock, lease: 5_000 });
    const before = Date.now();
    await store.commit(ANNA, { expected: 0, messages: turn(1) });
    const info = await store.info(ANNA);
    t.ok(Math.abs((info?.updatedAt ?? 0) - before) < HOUR / 2, 'the session has the time of the database');
    const key = { project: 'acme', route: '/v1/x', key: 'k' };
    await store.idempotency.put({ key, fingerprint: 'f', result: 'began' });
    await store.state.change([{ entry: 'a', key: 'b', text: '1', expiresIn: HOUR / 2 }]);
    t.ok(await store.idempotency.claim(key, 'f1'));
    t.equal(await store.state.get('a', 'b'), '1');
    await eventually(() => logs.some(({ level, msg }) => level === 'warn' && /differs from the database's/.test(String(msg))));
    await close();
  }
});

t.test('PG-29 a schema of a later release that still allows this one is used, and another one is refused', async (t) => {
  const first = await openStore();
  await first.store.commit(ANNA, { expected: 0, messages: turn(1) });
  await first.close();
  await first.query('UPDATE plugboard.meta SET version = 107');
  const later = await openStore({ schema: first.schema });
  t.equal(await later.store.version(ANNA), 1);
  await later.close();
  t.strictSame(await first.query('SELECT version FROM plugboard.meta'), [{ version: 107 }]);
  await first.query('UPDATE plugboard.meta SET oldest = 103');
  await t.rejects(openStore({ schema: first.schema }), {
    code: 'newer_schema',
    message: /was written by a newer version of this plugin \(schema 103; this version supports up to \d+\) and was not changed/,
  });
});
