import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { LeaseEnded, VersionConflict } from '@plugboard/kernel/contracts';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { Database } from '../src/database/database.js';
import { ANNA, acquire, endLease, HOUR, loaded, NEVER, newSchema, openStore, SYSTEM_CLOCK, session, turn } from './open-store.js';
import { realPostgres } from './real-postgres.js';
import { sentStatements } from './sent-statements.js';
import { TcpProxy } from './tcp-proxy.js';

const PAUSED = fileURLToPath(new URL('fixtures/paused.mjs', import.meta.url));
const EXPIRE = "UPDATE plugboard.replica SET expires_at = clock_timestamp() - interval '1 second'";

t.test('PG-4 five servers that start at once on an empty database all run, and PostgreSQL logs no error', async (t) => {
  const postgres = await realPostgres();
  const url = postgres.url(await postgres.createDatabase());
  const before = postgres.log().length;
  const schema = newSchema();
  const started = await Promise.all([1, 2, 3, 4, 5].map(() => openStore({ url, schema, clock: SYSTEM_CLOCK })));
  const [first, ...others] = started;
  await first?.store.commit(ANNA, { expected: 0, messages: turn(1) });
  for (const { store } of others) t.equal(await store.version(ANNA), 1);
  for (const { close } of started) await close();
  t.notMatch(postgres.log().slice(before), /ERROR|FATAL/);
});

t.test('PG-13 PG-15 a server whose row has expired commits nothing, and goes on with a new one', async (t) => {
  const { store, query, rows, logs, close } = await openStore({ clock: SYSTEM_CLOCK, lease: 5_000 });
  t.teardown(close);
  await acquire(store, 'turn_1');
  await acquire(store, 'turn_2', session('ben'));
  const lease = await acquire(store, 'turn_3', session('dan'));
  t.equal(lease.isHeld, true);
  for (const [key, turnId] of Object.entries({ anna: 'turn_1', dan: 'turn_3' })) {
    await store.begin(session(key), { turnId, input: turn(1) });
  }
  const right = await store.shared.hold('key', NEVER);
  await query(EXPIRE);
  const refused = { name: 'LeaseEnded', why: 'expired', message: /another server may have the session: nothing was stored/ };
  await t.rejects(store.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(1) }), refused);
  await t.rejects(store.commit(session('cleo'), { expected: 0, messages: turn(1) }), refused);
  await t.rejects(store.begin(session('ben'), { turnId: 'turn_2', input: turn(1) }), refused);
  await t.rejects(store.begin(session('cleo'), { turnId: 'turn_9', input: turn(1) }), refused);
  await t.rejects(acquire(store, 'turn_4'), refused);
  await eventually(() => logs.some(({ msg }) => /the lease of this server had expired/.test(String(msg))));
  t.match(lease.signal.reason, refused);
  t.equal(lease.isHeld, false);
  t.match(right.signal.reason, refused);
  await t.rejects(store.commit(session('dan'), { turnId: 'turn_3', expected: 0, messages: turn(1) }), refused);
  t.strictSame([await rows('session'), await rows('message'), await rows('usage')], [0, 0, 0]);
  await acquire(store, 'turn_5');
  await store.begin(ANNA, { turnId: 'turn_5', input: turn(1) });
  await store.commit(ANNA, { turnId: 'turn_5', expected: 0, messages: turn(1) });
});

t.test('PG-15 PG-16 two thirds of the lease after the last renewal a server ends its turns, without a query', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const clock = new ManualClock();
  const { store, rows, close } = await openStore({ url: proxy.through(postgres.url()), clock, lease: 15_000, patience: 0 });
  t.teardown(close);
  const lease = await acquire(store, 'turn_1');
  const sent = sentStatements(t);
  clock.advance(4_999);
  t.equal(lease.isHeld, true);
  t.strictSame(sent, [], 'asked of the clock');
  proxy.onRequest = () => false;
  proxy.cut();
  clock.advance(5_000);
  t.equal(lease.isHeld, true);
  clock.advance(1);
  t.equal(lease.isHeld, false);
  t.match(lease.signal.reason, { why: 'expired' });
  t.equal((await store.health()).ok, false, 'at once');
  await t.rejects(acquire(store, 'turn_1b'), { code: 'no_lease' });
  await t.rejects(store.abandon(ANNA, 'turn_1'), { code: 'unreachable' });
  proxy.onRequest = () => true;
  await eventually(async () => {
    clock.advance(1_000);
    return (await store.health()).ok && (await rows('turn')) === 0;
  });
  t.equal((await acquire(store, 'turn_2')).signal.aborted, false, 'what it could not remove then is removed');
});

t.test('PG-14 a commit that waits for another change of its turn and its session stores all of it', async (t) => {
  const { url } = await realPostgres();
  const { store, schema, query, rows, close } = await openStore({ clock: SYSTEM_CLOCK });
  const other = new Database({ url: url(), schema, poolSize: 1, clock: SYSTEM_CLOCK });
  t.teardown(() => other.close());
  t.teardown(close);
  const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}"%'`;
  for (const n of [1, 2]) {
    const turnId = `turn_${n}`;
    await acquire(store, turnId);
    await store.begin(ANNA, { turnId, input: turn(n) });
    let commit: Promise<void> | undefined;
    await other.transaction(async (run) => {
      await run("UPDATE plugboard.turn SET end_why = 'cancelled'");
      await run('UPDATE plugboard.session SET metadata = metadata');
      commit = store.commit(ANNA, { turnId, expected: n - 1, messages: turn(n) });
      await eventually(async () => (await query(waits)).length > 0);
    });
    await commit;
    t.strictSame([await store.version(ANNA), await rows('record'), await rows('turn')], [n, n, 0]);
  }
});

t.test('PG-17 what a killed server ran is taken over once, by the next turn or by `recover`', async (t) => {
  const first = await openStore({ clock: SYSTEM_CLOCK });
  const servers = [await openStore({ schema: first.schema }), await openStore({ schema: first.schema })];
  for (const { close } of [first, ...servers]) t.teardown(close);
  for (const key of ['anna', 'ben']) {
    await acquire(first.store, `turn_of_${key}`, session(key));
    await first.store.begin(session(key), { turnId: `turn_of_${key}`, input: turn(1) });
  }
  void acquire(first.store, 'waits').catch(() => {});
  await eventually(async () => (await first.rows('turn')) === 3);
  await first.query(`${EXPIRE} WHERE id = (SELECT min(id) FROM plugboard.replica)`);
  const [one, two] = servers.map(({ store }) => store);
  if (!one || !two) throw new Error('no servers');
  const lease = await acquire(one, 'turn_1');
  t.same(lease.interrupted, { id: ANNA, turnId: 'turn_of_anna', input: turn(1) });
  const found = await Promise.all([one.recover(), two.recover(), one.recover()]);
  t.same(found.flat(), [{ id: session('ben'), turnId: 'turn_of_ben', input: turn(1) }]);
  await one.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(7) });
  await t.rejects(first.store.commit(ANNA, { turnId: 'turn_of_anna', expected: 0, messages: turn(1) }), VersionConflict);
  await t.rejects(first.store.commit(session('ben'), { turnId: 'turn_of_ben', expected: 0, messages: turn(1) }), LeaseEnded);
  t.same(await loaded(two, ANNA), { version: 1, messages: turn(7) });
});

t.test('PG-17 an interrupted turn that cannot be read is skipped, and logged', async (t) => {
  const first = await openStore();
  const second = await openStore({ schema: first.schema });
  t.teardown(second.close);
  await acquire(first.store, 'turn_1');
  await first.store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  await first.query("UPDATE plugboard.turn SET input = '{}'");
  await first.close();
  t.equal((await acquire(second.store, 'turn_2')).interrupted, undefined);
  t.match(second.logs, [{ level: 'error', msg: 'an interrupted turn cannot be read and is skipped' }]);
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
  t.equal(told, 'begun\nanna VersionConflict\nben LeaseEnded\n');
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

t.test('PG-19 a server that has lost its lease stores no answer for a key that another one may have', async (t) => {
  const one = await openStore({ clock: SYSTEM_CLOCK });
  const key = { project: 'acme', route: '/v1/x', key: 'k' };
  const answer = { key, fingerprint: 'f', result: { text: 'late' } };
  t.equal(await one.store.idempotency.claim(key, 'f'), undefined);
  await endLease(one.schema);
  const two = await openStore({ schema: one.schema, clock: SYSTEM_CLOCK });
  t.teardown(async () => {
    await one.close();
    await two.close();
  });
  t.equal(await two.store.idempotency.claim(key, 'f'), undefined);
  await t.rejects(one.store.idempotency.put(answer), { name: 'LeaseEnded' });
  await two.store.idempotency.put({ ...answer, result: { text: 'first' } });
  await t.rejects(one.store.idempotency.put(answer), { name: 'LeaseEnded' });
  t.match(await two.store.idempotency.claim(key, 'f'), { result: { text: 'first' } });
});
