import { VersionConflict } from '@plugboard/kernel/contracts';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ANNA, DAY, HOUR, loaded, MINUTE, OWNER, openStore, session, turn } from './open-store.js';

const LARGE = 'x'.repeat(10_000);

t.test('PG-9 of 24 first requests at once one makes the session', async (t) => {
  const { store, rows, close } = await openStore({ poolSize: 8 });
  t.teardown(close);
  const all = Array.from({ length: 24 }, (_, n) => n);
  const commits = await Promise.allSettled(all.map((n) => store.commit(ANNA, { expected: 0, messages: turn(n) })));
  t.equal(commits.filter(({ status }) => status === 'fulfilled').length, 1);
  t.ok(commits.every((one) => one.status === 'fulfilled' || one.reason instanceof VersionConflict));
  const created = await Promise.allSettled(all.map(() => store.create(session('ben'), { metadata: {}, messages: turn(1) })));
  t.equal(created.filter(({ status }) => status === 'fulfilled').length, 1);
  t.strictSame([await rows('session'), await rows('message'), await rows('record')], [2, 4, 2]);
});

t.test('PG-12 U+0000 and lone surrogates come back the same, wherever they are', async (t) => {
  const { store, query, close } = await openStore();
  t.teardown(close);
  for (const odd of ['a\u0000b', 'half \ud83d', '\udc00', '"quoted"', '"', '\\u0000', '{"json":"\u0000"}']) {
    const id = { project: `p ${odd}`, agent: `a ${odd}`, key: odd };
    const key = { project: id.project, route: odd, key: odd };
    const approval = { id: odd, waits: true, caller: odd, expiresAt: 9e15, listed: odd, text: odd };
    await store.begin(id, { turnId: odd, input: turn(1, odd) });
    const idempotency = { key, fingerprint: odd, result: { text: odd } };
    const more = { record: odd, user: odd, idempotency, approvals: [approval] };
    await store.commit(id, { turnId: odd, expected: 0, messages: turn(1, odd), ...more });
    await store.putSummary(id, 1, { messages: 1, text: odd });
    await store.setMetadata(id, { [odd]: odd });
    await store.documents.put(id, odd, odd);
    await store.pendingToolCalls.save(id, [odd], turn(1, odd));
    t.match(await store.load(id), { version: 1, messages: turn(1, odd), summary: { messages: 1, text: odd } });
    t.match(await store.turns(id, { limit: 1, order: 'asc' }), [{ turn: 1, record: odd }]);
    t.match(await store.list(id.project, { limit: 2, order: 'asc', user: odd, agents: [id.agent] }), [
      { id, user: odd, metadata: { [odd]: odd } },
    ]);
    t.strictSame(await store.documents.get(id.project, odd), { id, text: odd });
    t.strictSame(await store.idempotency.claim(key, 'f1'), idempotency);
    t.strictSame(await store.approvals.get(id.project, [odd]), [{ ...approval, session: id }]);
    t.strictSame(await store.pendingToolCalls.load(id, odd), turn(1, odd));
    t.same([...(await store.pendingToolCalls.find(id, [odd])).keys()], [odd]);
  }
  const columns = await query('SELECT DISTINCT data_type FROM information_schema.columns WHERE data_type LIKE $1', ['json%']);
  t.strictSame(columns, []);
});

t.test('PG-28 S-39 quotas are counted in several rows, across restarts and deletions', async (t) => {
  const quotas = { maxSessions: 100, maxBytes: 35_000 };
  const first = await openStore({ quotas });
  await first.store.create(session('a'), { metadata: { topic: LARGE }, messages: [] });
  await first.store.commit(session('b'), { expected: 0, messages: turn(1, LARGE), record: 'what happened' });
  await first.store.documents.put(session('b'), 'resp_1', LARGE);
  const refused = { name: 'ProjectQuotaExceeded', setting: 'maxBytesPerProject', message: /`maxBytesPerProject` \(35000\)/ };
  const large = { metadata: {}, messages: turn(1, LARGE) };
  await t.rejects(first.store.create(session('c'), large), refused);
  await t.rejects(first.store.fork(session('b'), 'd', 1), refused);
  await first.close();

  const { store, query, close } = await openStore({ schema: first.schema, quotas, clock: first.clock });
  t.teardown(close);
  await t.rejects(
    store.begin(session('c'), { turnId: 'turn_1', input: turn(1) }).then(() => store.create(session('c'), large)),
    refused,
  );
  await store.abandon(session('c'), 'turn_1');
  await store.documents.put(session('b'), 'resp_1', 'small');
  await store.create(session('c'), large);
  await t.rejects(store.create(session('d'), large), refused);
  await store.setMetadata(session('a'), {});
  await store.fork(session('b'), 'd', 1);
  await store.documents.delete(OWNER.project, 'resp_1');
  for (let n = 1; n <= 20; n++) await store.commit(session('a'), { expected: n - 1, messages: turn(n) });
  const [counted] = await query(`SELECT count(*)::int > 1 AS several, sum(sessions)::int AS sessions,
    sum(bytes)::int = (SELECT sum(bytes) FROM plugboard.session) AS same FROM plugboard.usage`);
  t.strictSame(counted, { several: true, sessions: 4, same: true });
  for (const key of ['a', 'b', 'c', 'd']) await store.delete(session(key));
  t.strictSame(await query('SELECT sum(sessions)::int AS sessions, sum(bytes)::int AS bytes FROM plugboard.usage'), [
    { sessions: 0, bytes: 0 },
  ]);
});

t.test('PG-28 expired rows are deleted in small steps, and their versions are kept', async (t) => {
  const clock = new ManualClock();
  const { store, rows, query, close } = await openStore({ clock, ttl: DAY });
  t.teardown(close);
  await store.commit(ANNA, { expected: 0, messages: turn(1), record: 'one' });
  await store.begin(session('long'), { turnId: 'turn_1', input: turn(1) });
  await store.commit(session('long'), { expected: 0, messages: turn(1) });
  await Promise.all(Array.from({ length: 150 }, (_, n) => store.create(session(`s${n}`), { metadata: {}, messages: turn(n) })));
  await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(1));
  const keys = Array.from({ length: 150 }, (_, n) => ({ entry: 'a', key: `k${n}`, text: '1', expiresIn: HOUR }));
  await store.state.change([...keys, { entry: 'a', key: 'stays', text: '1' }]);
  await store.idempotency.put({ key: { project: 'acme', route: '/', key: 'k' }, fingerprint: 'f', result: 'began' });
  clock.advance(DAY + HOUR);
  const left = new Set<number>();
  await eventually(async () => {
    clock.advance(10 * MINUTE);
    left.add(await rows('session'));
    return left.has(1) && (await rows('state')) === 1 && (await rows('idempotency')) === 0;
  });
  t.ok(left.has(52), `${[...left]}: one hundred at a time`);
  t.strictSame(
    await Promise.all(['session', 'message', 'record', 'state', 'pending_call', 'pending_call_key', 'idempotency'].map(rows)),
    [1, 2, 1, 1, 0, 0, 0],
    'the session with a running turn stays',
  );
  t.strictSame(await query('SELECT sum(sessions)::int AS sessions FROM plugboard.usage'), [{ sessions: 1 }]);
  t.same(await loaded(store, ANNA), { version: 2, messages: [] }, 'a new session is not taken for the expired one');
});

t.test('S-19 a row that is not a message fails its session only, and the error names the row', async (t) => {
  const { store, schema, query, logs, close } = await openStore();
  t.teardown(close);
  for (const key of ['anna', 'ben']) await store.create(session(key), { metadata: {}, messages: turn(1) });
  await query("UPDATE plugboard.message SET body = '{}' WHERE session = 1 AND place = 1");
  await t.rejects(store.load(ANNA), {
    code: 'bad_row',
    message: `${schema}: message 1 of turn 1 of session 1 has an unknown role`,
  });
  await query("UPDATE plugboard.session SET metadata = '[]' WHERE id = 1");
  await t.rejects(store.info(ANNA), {
    code: 'bad_row',
    message: /the metadata of session 1 is not an object\. Only the session/,
  });
  t.match(await store.list('acme', { limit: 1, order: 'asc' }), [{ id: session('ben') }], 'the page is full');
  t.match(logs, [{ level: 'error', msg: 'a session cannot be read and is left out of a list' }]);
  t.same(await store.health(), { ok: true });
});
