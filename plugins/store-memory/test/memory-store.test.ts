import {
  type IdempotencyRecord,
  type Message,
  type SessionId,
  type SessionStore,
  SessionStores,
  VersionConflict,
} from '@plugboard/kernel';
import { ManualClock, pluginContract, sessionStoreContract, testContext } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';

const HOUR = 60 * 60_000;

function open(config: object = {}, clock = new ManualClock()) {
  const ctx = testContext(plugin, { config, clock, entry: 'sessions' });
  return {
    store: ctx.contributed(SessionStores),
    clock,
    logs: ctx.logs,
    stop: () => ctx.lifecycle.stop?.(new AbortController().signal),
  };
}

const OWNER = { project: 'acme', agent: 'helper' };
const session = (key: string): SessionId => ({ ...OWNER, key });

/** The conversation as it is loaded. */
async function kept(store: SessionStore, id: SessionId) {
  const { version, messages } = await store.load(id);
  return { version, messages };
}

/** A turn whose JSON is so many bytes long. */
function turn(bytes: number): readonly Message[] {
  const frame = JSON.stringify({ role: 'user', content: '' }).length;
  return [{ role: 'user', content: 'x'.repeat(bytes - frame) }];
}

t.test('keeps to the contract of plugins', async (t) => {
  for (const c of pluginContract(plugin, { packageDir: new URL('..', import.meta.url) })) t.test(c.name, c.run);
});

t.test('keeps to the contract of session stores', async (t) => {
  const clock = new ManualClock();
  for (const c of sessionStoreContract(() => open({}, clock), { clock })) t.test(c.name, c.run);
});

t.test('forgets a session when its last turn is `ttl` ago, and says that it is lost', async (t) => {
  const { store, clock, logs } = open({ ttl: '2h' });
  await store.commit(session('anna'), { expected: 0, messages: turn(100) });
  clock.advance(HOUR);
  await store.commit(session('anna'), { expected: 1, messages: turn(100) });
  clock.advance(2 * HOUR - 1);
  t.equal((await store.load(session('anna'))).version, 2);
  t.same(logs, []);
  clock.advance(2 * HOUR);
  t.equal((await store.load(session('anna'))).version, 0);
  t.match(logs, [
    {
      level: 'info',
      msg: 'evicted a session: its messages are lost, for they were in memory only',
      project: 'acme',
      agent: 'helper',
      session_hash: /^[0-9a-f]{12}$/,
      turns: 2,
      bytes: 200,
      limit: 'ttl',
    },
  ]);
  t.notMatch(JSON.stringify(logs), 'anna', 'the key may be a name');
});

t.test('frees the memory of what has expired also when nobody calls', async (t) => {
  const { store, clock, logs } = open({ ttl: '90d' });
  await store.commit(session('early'), { expected: 0, messages: turn(100) });
  clock.advance(24 * HOUR);
  await store.commit(session('late'), { expected: 0, messages: turn(100) });
  clock.advance(89 * 24 * HOUR);
  t.match(logs, [{ turns: 1, limit: 'ttl' }], 'no call was needed for the first');
  t.equal(clock.pending, 1, 'the second is waited for');
  clock.advance(24 * HOUR);
  t.equal(logs.length, 2);
  t.equal(clock.pending, 0, 'nothing is left to wait for');
});

t.test('evicts the session that was not used for the longest time when there are more than `maxSessions`', async (t) => {
  const { store, clock, logs } = open({ maxSessions: 2 });
  for (const key of ['a', 'b']) {
    await store.commit(session(key), { expected: 0, messages: turn(100) });
    clock.advance(1);
  }
  await store.load(session('a')); // a turn begins
  await store.commit(session('c'), { expected: 0, messages: turn(100) });
  t.match(logs, [{ level: 'warn', turns: 1, limit: 'maxSessions' }]);
  t.same(await Promise.all(['a', 'b', 'c'].map(async (key) => (await store.load(session(key))).version)), [1, 0, 1]);
});

t.test('evicts as many as it takes when they hold more than `maxBytes` together', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  for (const key of ['a', 'b', 'c']) await store.commit(session(key), { expected: 0, messages: turn(300) });
  await store.commit(session('d'), { expected: 0, messages: turn(500) });
  t.match(logs, [
    { limit: 'maxBytes', bytes: 300 },
    { limit: 'maxBytes', bytes: 300 },
  ]);
  t.same(await Promise.all(['a', 'b', 'c', 'd'].map(async (key) => (await store.load(session(key))).version)), [0, 0, 1, 1]);
});

t.test('counts bytes, not characters', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  await store.commit(session('b'), { expected: 0, messages: [{ role: 'user', content: '漢'.repeat(320) }] });
  t.match(logs, [{ limit: 'maxBytes', bytes: 100 }]);
});

t.test('refuses a turn for which there can be no room, and nobody else loses anything for it', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(300) });
  await store.commit(session('b'), { expected: 0, messages: turn(600) });
  await t.rejects(store.commit(session('b'), { expected: 1, messages: turn(500) }), {
    message:
      'the session would take 1100 bytes, and the memory store holds 1024 in all: raise its maxBytes, or use a store on disk',
  });
  await t.rejects(store.pendingToolCalls.save(OWNER, ['call_1'], turn(1025)), {
    message: /^a turn with pending tool calls would take 1025 bytes/,
  });
  t.same(logs, []);
  t.equal((await store.load(session('a'))).version, 1);
  t.same(await kept(store, session('b')), { version: 1, messages: turn(600) });
});

t.test('tells a turn whose session was evicted meanwhile that it is gone', async (t) => {
  const { store } = open({ maxSessions: 1 });
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  const { version } = await store.load(session('a'));
  await store.commit(session('b'), { expected: 0, messages: turn(100) });
  await t.rejects(store.commit(session('a'), { expected: version, messages: turn(100) }), VersionConflict);
});

t.test('keeps pending tool calls within the same limits, each by its own number and with one measure of bytes', async (t) => {
  const { store, clock, logs } = open({ maxSessions: 2, maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(200) });
  clock.advance(1);
  await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(400));
  t.same(logs, [], 'two calls have one copy, and take no place of a session');
  await store.pendingToolCalls.save(OWNER, ['call_3'], turn(100));
  t.match(logs, [{ level: 'warn', msg: /^evicted a pending tool call/, limit: 'maxSessions', bytes: 200 }]);
  t.equal(await store.pendingToolCalls.load(OWNER, 'call_1'), undefined);
  t.same(await store.pendingToolCalls.load(OWNER, 'call_2'), turn(400));
  clock.advance(1);
  await store.pendingToolCalls.save(OWNER, ['call_4'], turn(950));
  t.match(
    logs.slice(1),
    [{ limit: 'maxSessions' }, { turns: 1, limit: 'maxBytes' }, { limit: 'maxBytes', bytes: 100 }],
    'the oldest first',
  );
  t.same(await store.pendingToolCalls.load(OWNER, 'call_4'), turn(950));
});

/** What is known of a key, whose JSON is so many bytes long. */
function answer(key: string, bytes: number): IdempotencyRecord {
  const record = { key: { project: 'acme', route: '/', key }, fingerprint: 'f1', result: { text: '' } };
  return { ...record, result: { text: 'x'.repeat(bytes - JSON.stringify(record).length) } };
}

t.test('keeps 100,000 idempotency keys, and then forgets the oldest', async (t) => {
  const { store, logs } = open();
  for (let n = 0; n < 100_000; n++) await store.idempotency.put(answer(`${n}`, 200));
  t.same(logs, []);
  await store.idempotency.put(answer('one more', 200));
  t.equal(await store.idempotency.get(answer('0', 200).key), undefined);
  t.ok(await store.idempotency.get(answer('1', 200).key));
  t.match(logs, [{ level: 'warn', msg: /^evicted what is known of a request with an Idempotency-Key/, limit: '100,000 keys' }]);
});

t.test('keeps answers within the same bytes as everything else, the oldest going first', async (t) => {
  const { store, clock, logs } = open({ maxBytes: '1kb' });
  await store.idempotency.put(answer('a', 300));
  clock.advance(1);
  await store.commit(session('a'), { expected: 0, messages: turn(300) });
  clock.advance(1);
  await store.commit(session('b'), { expected: 0, messages: turn(300), idempotency: answer('b', 200) });
  t.match(logs, [{ limit: 'maxBytes', bytes: 300, turns: undefined }]);
  t.equal(await store.idempotency.get(answer('a', 300).key), undefined);
  await store.idempotency.put(answer('c', 400));
  t.match(logs.slice(1), [{ limit: 'maxBytes', turns: 1 }], 'then the session, which is older than the other answer');
  t.same(await store.idempotency.get(answer('b', 200).key), answer('b', 200));

  await t.rejects(store.idempotency.put(answer('d', 1025)), {
    message: /^the answer to a request with an Idempotency-Key would/,
  });
  const tooMuch = { expected: 1, messages: turn(100), idempotency: answer('d', 700) };
  await t.rejects(store.commit(session('b'), tooMuch), { message: /^the session would take 1100 bytes/ });
  t.equal(logs.length, 2);
  t.equal(await store.version(session('b')), 1);
});

t.test('counts metadata and summaries, and evicts for them too', async (t) => {
  const { store, clock, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(300) });
  clock.advance(1);
  await store.create(session('b'), { metadata: { note: 'x'.repeat(189) }, messages: turn(300) });
  await store.putSummary(session('b'), 1, { messages: 1, text: 'x'.repeat(198) });
  t.same(logs, [], '300, and 300 + 200 + 200');
  await store.setMetadata(session('b'), { note: 'x'.repeat(389) });
  t.match(logs, [{ limit: 'maxBytes', bytes: 300, turns: 1 }]);
  await store.putSummary(session('b'), 1, { messages: 1, text: 'x'.repeat(98) });
  await store.commit(session('c'), { expected: 0, messages: turn(224) });
  t.equal(logs.length, 1, 'what was replaced is not counted');
  await store.commit(session('c'), { expected: 1, messages: turn(100) });
  t.match(logs.slice(1), [{ limit: 'maxBytes', bytes: 800 }]);
});

t.test('refuses metadata, summaries, sessions and copies for which there can be no room', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(600) });
  const tooMuch = { message: /^the session would take \d+ bytes, and the memory store holds 1024 in all/ };
  await t.rejects(store.setMetadata(session('a'), { note: 'x'.repeat(500) }), tooMuch);
  await t.rejects(store.putSummary(session('a'), 1, { messages: 1, text: 'x'.repeat(500) }), tooMuch);
  await t.rejects(store.create(session('b'), { metadata: { note: 'x'.repeat(500) }, messages: turn(600) }), tooMuch);
  t.same(logs, []);
  t.match(await store.info(session('a')), { metadata: {} });
  t.equal((await store.load(session('a'))).summary, undefined);
  t.equal(await store.info(session('b')), undefined);
});

t.test('takes other metadata for no use of a session', async (t) => {
  const { store, clock, logs } = open({ ttl: '2h', maxSessions: 2 });
  await store.create(session('a'), { metadata: {}, messages: [] });
  clock.advance(HOUR);
  await store.create(session('b'), { metadata: {}, messages: [] });
  await store.setMetadata(session('a'), { topic: 'rain' });
  await store.create(session('c'), { metadata: {}, messages: [] });
  t.match(logs, [{ limit: 'maxSessions', turns: 0 }]);
  t.equal(await store.info(session('a')), undefined);
  await store.setMetadata(session('b'), { topic: 'rain' });
  clock.advance(2 * HOUR);
  t.same(await store.list(OWNER.project, { limit: 10, order: 'asc' }), []);
});

t.test('remembers the versions of as many deleted sessions as it keeps sessions', async (t) => {
  const { store, logs } = open({ maxSessions: 2 });
  for (const key of ['a', 'b', 'c']) {
    await store.commit(session(key), { expected: 0, messages: turn(100) });
    t.equal(await store.delete(session(key)), true);
  }
  t.same(await Promise.all(['a', 'b', 'c'].map((key) => store.version(session(key)))), [0, 2, 2]);
  t.same(logs, [], 'to delete is not to lose');
});

t.test('forgets everything when it is stopped, and waits for nothing more', async (t) => {
  const { store, clock, stop, logs } = open();
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  await store.pendingToolCalls.save(OWNER, ['call_1'], turn(100));
  await store.idempotency.put(answer('a', 200));
  await store.create(session('b'), { metadata: {}, messages: [] });
  await store.delete(session('b'));
  t.equal(clock.pending, 4);
  await stop();
  t.equal(clock.pending, 0);
  t.equal(await store.version(session('b')), 0);
  t.same(await kept(store, session('a')), { version: 0, messages: [] });
  t.same(logs, []);
});
