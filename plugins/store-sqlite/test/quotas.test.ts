import t from 'tap';
import { DAY, groupCommitted, HOUR, loaded, OWNER, openStore, pass, session, turn } from './open-store.js';

const LARGE = 'x'.repeat(10_000);

t.test('S-39 counts what a project stores across restarts, deletions and expiry', async (t) => {
  const folder = t.testdir();
  const quotas = { maxSessions: 100, maxBytes: 35_000 };
  const first = openStore(folder, { quotas, ttl: 10 * DAY });
  await first.store.create(session('a'), { metadata: { topic: LARGE }, messages: [] });
  await first.store.commit(session('b'), { expected: 0, messages: turn(1, LARGE) });
  await first.store.documents.put(session('b'), 'resp_1', LARGE);
  const refused = { name: 'ProjectQuotaExceeded', setting: 'maxBytesPerProject', message: /`maxBytesPerProject` \(35000\)/ };
  const large = { metadata: {}, messages: turn(1, LARGE) };
  await t.rejects(first.store.create(session('c'), large), refused);
  first.close();

  const { store, clock, close } = openStore(folder, { quotas, ttl: 10 * DAY, clock: first.clock });
  t.teardown(close);
  await t.rejects(store.create(session('c'), large), refused, 'after a restart');
  await store.documents.put(session('b'), 'resp_1', 'small');
  await store.create(session('c'), large);
  await t.rejects(store.create(session('d'), large), refused);
  await store.setMetadata(session('a'), {});
  await store.create(session('d'), large);
  await t.rejects(store.create(session('e'), large), refused);
  await store.delete(session('c'));
  await store.create(session('e'), large);
  await pass(clock, 11 * DAY);
  t.equal(await store.info(session('e')), undefined);
  for (const key of ['f', 'g', 'h']) await store.create(session(key), large);
  await t.rejects(store.create(session('i'), large), refused, 'nothing else was freed');
});

t.test('S-39 pending tool calls and idempotency records count, across restarts and expiry', async (t) => {
  const folder = t.testdir();
  const quotas = { maxSessions: 100, maxBytes: 35_000 };
  const refused = { name: 'ProjectQuotaExceeded', setting: 'maxBytesPerProject' };
  const record = (key: string, project = OWNER.project) => ({
    key: { project, route: '/v1/chat/completions', key },
    fingerprint: 'f',
    result: { text: LARGE },
  });
  const first = openStore(folder, { quotas });
  await first.store.idempotency.put({ ...record('one'), result: 'began' });
  await first.store.idempotency.put(record('one'));
  await first.store.idempotency.put(record('one'));
  await first.store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(1, LARGE));
  await first.store.commit(session('a'), { expected: 0, messages: turn(1), idempotency: record('two') });
  const fill = async (store: typeof first.store) => {
    await t.rejects(store.idempotency.put(record('three')), refused);
    await t.rejects(store.pendingToolCalls.save(OWNER, ['call_3'], turn(1, LARGE)), refused);
    await t.rejects(store.create(session('b'), { metadata: {}, messages: turn(1, LARGE) }), refused);
    await store.idempotency.put(record('three', 'another project'));
  };
  await fill(first.store);
  first.close();

  const { store, clock, close } = openStore(folder, { quotas, clock: first.clock });
  t.teardown(close);
  await fill(store);
  await pass(clock, 2 * HOUR, HOUR / 4);
  await store.idempotency.put(record('three'));
  await t.rejects(store.idempotency.put(record('four')), refused, 'only the pending call has expired');
  await pass(clock, 23 * HOUR);
  for (const key of ['four', 'five']) await store.idempotency.put(record(key));
  await t.rejects(store.idempotency.put(record('six')), refused);
});

t.test('S-39 a fork is copied in slices; other calls are answered meanwhile', async (t) => {
  const { store, database, close } = openStore(t.testdir());
  t.teardown(close);
  for (let n = 0; n < 20; n++) {
    await store.commit(session('long'), { expected: n, messages: Array.from({ length: 100 }, () => turn(n)).flat() });
  }
  const forked = store.fork(session('long'), 'copy', 19);
  let slices = 0;
  let isForked = false;
  void forked.then(() => {
    isForked = true;
  });
  while (!isForked) {
    const { version, messages } = await store.load(session('copy'));
    t.ok(version === 0 || messages.length === 3_800, 'nothing of an unfinished fork can be seen');
    await new Promise(setImmediate);
    slices++;
  }
  t.ok(slices > 6, `${slices} slices`);
  const source = await loaded(store, session('long'));
  t.same(await loaded(store, session('copy')), { version: 19, messages: source.messages.slice(0, 3_800) });
  t.equal(database.prepare('SELECT count(*) AS n FROM leftover').get()?.n, 0);
});

t.test('S-39 a fork that fails, or whose process dies, leaves nothing behind', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder, { quotas: { maxSessions: 100, maxBytes: 220_000 } });
  const { store, clock } = first;
  const messages = Array.from({ length: 600 }, () => turn(1)).flat();
  await store.commit(session('long'), { expected: 0, messages });
  const many = ['a', 'b', 'c', 'd', 'e'].map((key) => store.fork(session('long'), key, 1));
  const failures = (await Promise.allSettled(many)).filter(({ status }) => status === 'rejected');
  t.match(failures, [{ reason: { name: 'ProjectQuotaExceeded' } }, { reason: { name: 'ProjectQuotaExceeded' } }]);
  const copies = (await store.list(OWNER.project, { limit: 10, order: 'asc' })).map(({ id }) => id);
  t.equal(copies.length, 4);
  await pass(clock, 1_000, 50);
  const count = () => first.database.prepare('SELECT count(*) AS n FROM message').get()?.n;
  t.equal(count(), 4 * 1_200, 'the sweeper deleted what the failed forks had copied');

  await store.delete(copies[1] ?? session(''));
  await pass(clock, 1_000, 50);
  void store.fork(session('long'), 'unfinished', 1).catch(() => {});
  while (Number(count()) <= 3 * 1_200) await new Promise(setImmediate); // until a slice is copied
  first.database.close(); // as a killed process would leave it

  const second = openStore(folder, { clock });
  t.teardown(second.close);
  t.same(await loaded(second.store, session('unfinished')), { version: 0, messages: [] });
  await pass(clock, 11 * 60_000, 60_000);
  await pass(clock, 1_000, 50);
  t.equal(second.database.prepare('SELECT count(*) AS n FROM message').get()?.n, 3 * 1_200);
});

t.test('S-39 refuses a fork whose source is deleted, or whose key is used, while it is copied', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  const messages = Array.from({ length: 1_000 }, () => turn(1)).flat();
  for (const key of ['one', 'two']) await store.commit(session(key), { expected: 0, messages });
  const forks = [store.fork(session('one'), 'copy of one', 1), store.fork(session('two'), 'copy of two', 1)];
  await groupCommitted();
  const changes = [store.delete(session('one')), store.commit(session('copy of two'), { expected: 0, messages: turn(7) })];
  t.match(await Promise.allSettled(forks), [{ status: 'fulfilled' }, { reason: { name: 'SessionExists' } }]);
  await Promise.all(changes);
  t.equal(await store.info(session('copy of one')), undefined);
  t.same(await loaded(store, session('copy of two')), { version: 1, messages: turn(7) });
  await pass(clock, 2_000, 50);
  t.equal(database.prepare('SELECT count(*) AS n FROM message').get()?.n, 2_002);
});
