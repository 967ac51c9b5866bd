import { eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { ANNA, acquire, NEVER, openStore, SYSTEM_CLOCK, turn } from './open-store.js';
import { freePort, realPostgres } from './real-postgres.js';
import { sentStatements } from './sent-statements.js';
import { TcpProxy } from './tcp-proxy.js';

const ARRIVAL = { maxAhead: 9, title: 'a question' };

/** Two servers whose clocks stand still: nothing is found by polling. */
async function twoServers(t: Test, settings: Parameters<typeof openStore>[0] = {}) {
  const clock = new ManualClock();
  const one = await openStore({ clock, ...settings });
  const two = await openStore({ clock, schema: one.schema, ...settings });
  for (const { close } of [one, two]) t.teardown(close);
  return { one, two, clock };
}

t.test('PG-1 PG-18 hints reach the turns of other servers at once', async (t) => {
  const { one, two, clock } = await twoServers(t);
  const listens = `SELECT FROM pg_stat_activity WHERE query = 'LISTEN "plugboard_${one.schema}"'`;
  await eventually(async () => (await one.query(listens)).length === 2);
  const lease = await acquire(one.store, 'turn_1');
  const next = two.store.shared.acquire(ANNA, { turnId: 'turn_2', ...ARRIVAL }, NEVER);
  await eventually(async () => (await one.rows('turn')) === 2);
  const ended = two.store.shared.endTurns(ANNA, 'cancelled', NEVER, 'turn_1');
  await eventually(() => lease.signal.aborted);
  await one.store.abandon(ANNA, 'turn_1');
  await ended;
  t.match(await next, { kind: 'lease' });
  t.equal(clock.monotonic(), 0);
  t.notOk([...one.logs, ...two.logs].some(({ level }) => level === 'warn'));
});

t.test('PG-1 PG-18 without notifications, other servers are asked, and one warning says why', async (t) => {
  const listenUrl = `postgres://127.0.0.1:${await freePort()}/nothing`;
  const { one, two, clock } = await twoServers(t, { listenUrl });
  const warnings = () => one.logs.filter(({ level }) => level === 'warn');
  await eventually(() => warnings().length === 1);
  t.match(warnings(), [{ msg: /Behind a pooler in transaction mode, set `listenUrl`/ }]);
  const lease = await acquire(one.store, 'turn_1');
  const next = two.store.shared.acquire(ANNA, { turnId: 'turn_2', ...ARRIVAL }, NEVER);
  await eventually(async () => (await one.rows('turn')) === 2);
  const ended = two.store.shared.endTurns(ANNA, 'cancelled', NEVER, 'turn_1');
  const asked = 'SELECT FROM plugboard.turn WHERE end_why IS NOT NULL';
  await eventually(async () => (await one.query(asked)).length === 1);
  t.equal(lease.signal.aborted, false);
  await eventually(async () => {
    clock.advance(100);
    await one.query('SELECT');
    return lease.signal.aborted;
  });
  await one.store.abandon(ANNA, 'turn_1');
  let isOver = false;
  void ended
    .then(() => next)
    .then(() => {
      isOver = true;
    });
  await eventually(async () => {
    clock.advance(100);
    await one.query('SELECT');
    return isOver;
  });
  t.equal(warnings().length, 1, 'one warning');
});

t.test('PG-1 a connection for LISTEN that died without a word is found and replaced', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const clock = new ManualClock();
  const { logs, query, close } = await openStore({ clock, listenUrl: proxy.through(postgres.url()) });
  t.teardown(close);
  await eventually(() => proxy.opened === 1);
  /** Lets time pass, no faster than PostgreSQL answers. */
  const until = (level: string, msg: RegExp, count = 1) =>
    eventually(async () => {
      clock.advance(100);
      await query('SELECT');
      return logs.filter((line) => line.level === level && msg.test(String(line.msg))).length >= count;
    });
  proxy.silence();
  await until('warn', /notifications of other servers do not arrive/);
  await until('info', /notifications arrive again/);
  t.ok(proxy.opened >= 2);
  proxy.onRequest = () => false;
  proxy.cut();
  await until('warn', /notifications of other servers do not arrive/, 2);
  await close();
  t.equal(clock.pending, 0);
});

t.test('PG-3 a notification is a statement of its own, and a turn that waits for no other sends none', async (t) => {
  const one = await openStore({ clock: SYSTEM_CLOCK });
  const two = await openStore({ clock: SYSTEM_CLOCK, schema: one.schema });
  for (const { close } of [one, two]) t.teardown(close);
  const sent = sentStatements(t);
  const notifications = () => sent.filter(({ text }) => text.includes('pg_notify'));
  await acquire(one.store, 'turn_1');
  await one.store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  await one.store.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(1) });
  const withoutChecks = notifications().length;
  await acquire(one.store, 'turn_2');
  const next = two.store.shared.acquire(ANNA, { turnId: 'turn_3', ...ARRIVAL }, NEVER);
  await eventually(async () => (await one.rows('turn')) === 2);
  await one.store.commit(ANNA, { turnId: 'turn_2', expected: 1, messages: turn(2) });
  await next;
  await eventually(() => notifications().length > withoutChecks);
  for (const { client, text } of notifications()) {
    t.equal(text, 'SELECT pg_notify($1, $2)');
    const own = sent.filter((one) => one.client === client);
    const at = own.findIndex((one) => one.text === text);
    const before = own.slice(0, at).map((one) => one.text);
    const open = before.findLastIndex((one) => one.startsWith('BEGIN'));
    t.ok(open <= before.lastIndexOf('COMMIT'), 'outside of a transaction');
  }
});
