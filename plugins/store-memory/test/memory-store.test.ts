import { type Message, type SessionStore, SessionStores } from '@plugboard/kernel';
import { type IdempotencyRecord, type SessionId, VersionConflict } from '@plugboard/kernel/contracts';
import {
  CapturedLog,
  ManualClock,
  pluginContract,
  type StoreQuotas,
  sessionStoreContract,
  testContext,
} from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { MemoryStore } from '../src/memory-store.js';

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

async function loaded(store: SessionStore, id: SessionId) {
  const { version, messages } = await store.load(id);
  return { version, messages };
}

/** A turn whose JSON has that many bytes. */
function turn(bytes: number): readonly Message[] {
  const frame = JSON.stringify({ role: 'user', content: '' }).length;
  return [{ role: 'user', content: 'x'.repeat(bytes - frame) }];
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the session store contract', async (t) => {
  const clock = new ManualClock();
  const openLimited = ({ maxSessions, maxBytes }: StoreQuotas) =>
    open({ maxSessionsPerProject: maxSessions, maxBytesPerProject: `${maxBytes}b` }, clock);
  const limits = { ttl: HOUR * 24, maxSessions: 1e3, maxBytes: 1e9, maxSessionsPerProject: 1e3, maxBytesPerProject: 1e9 };
  const openCapped = {
    sessions: (maxSessions: number) => open({ maxSessions }, clock),
    idempotencyRecords: (maxRecords: number) => ({
      store: new MemoryStore({ ...limits, maxRecords }, clock, new CapturedLog().logger(clock)),
    }),
    stateKeys: (maxKeys: number) => ({
      store: new MemoryStore({ ...limits, state: { maxKeys } }, clock, new CapturedLog().logger(clock)),
    }),
  };
  const register = (folder: string) => testContext(plugin, { folder, clock });
  sessionStoreContract(t.test, { openLimited, openCapped, register, open: () => open({}, clock), clock });
});

t.test('TC-3 says that everything is lost with the process', async (t) => {
  t.equal(open().store.isVolatile, true);
});

t.test('expires a session `ttl` after its last turn and logs the loss', async (t) => {
  const { store, clock, logs } = open({ ttl: '2h' });
  await store.commit(session('anna'), { expected: 0, messages: turn(100) });
  clock.advance(HOUR);
  await store.commit(session('anna'), { expected: 1, messages: turn(100) });
  clock.advance(2 * HOUR - 1);
  t.equal((await store.load(session('anna'))).version, 2);
  t.same(logs, []);
  clock.advance(2 * HOUR);
  t.same(await loaded(store, session('anna')), { version: 3, messages: [] }, 'a new session is not taken for the lost one');
  t.match(logs, [
    {
      level: 'info',
      msg: 'evicted a session: its messages are lost, because they were only in memory',
      project: 'acme',
      agent: 'helper',
      session_hash: /^[0-9a-f]{12}$/,
      turns: 2,
      bytes: 200,
      limit: 'ttl',
    },
  ]);
  t.notMatch(JSON.stringify(logs), 'anna', 'the key may identify a person');
});

t.test('releases expired sessions without a call', async (t) => {
  const { store, clock, logs } = open({ ttl: '90d' });
  await store.commit(session('early'), { expected: 0, messages: turn(100) });
  clock.advance(24 * HOUR);
  await store.commit(session('late'), { expected: 0, messages: turn(100) });
  clock.advance(89 * 24 * HOUR);
  t.match(logs, [{ turns: 1, limit: 'ttl' }], 'the first has expired');
  t.equal(clock.pending, 2, 'a timer waits for the second, and one for the version that the first left behind');
  clock.advance(24 * HOUR);
  t.equal(logs.length, 2);
  clock.advance(30 * 24 * HOUR);
  t.equal(clock.pending, 0, 'no timer is left');
});

t.test('evicts the least recently used session beyond `maxSessions`', async (t) => {
  const { store, clock, logs } = open({ maxSessions: 2 });
  for (const key of ['a', 'b']) {
    await store.commit(session(key), { expected: 0, messages: turn(100) });
    clock.advance(1);
  }
  await store.load(session('a')); // a turn begins
  await store.commit(session('c'), { expected: 0, messages: turn(100) });
  t.match(logs, [{ level: 'warn', turns: 1, limit: 'maxSessions' }]);
  t.same(await Promise.all(['a', 'b', 'c'].map(async (key) => (await store.load(session(key))).version)), [1, 2, 1]);
});

t.test('evicts as many sessions as needed to stay within `maxBytes`', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  for (const key of ['a', 'b', 'c']) await store.commit(session(key), { expected: 0, messages: turn(300) });
  await store.commit(session('d'), { expected: 0, messages: turn(500) });
  t.match(logs, [
    { limit: 'maxBytes', bytes: 300 },
    { limit: 'maxBytes', bytes: 300 },
  ]);
  t.same(await Promise.all(['a', 'b', 'c', 'd'].map(async (key) => (await store.load(session(key))).version)), [2, 2, 1, 1]);
});

t.test('counts bytes, not characters', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  await store.commit(session('b'), { expected: 0, messages: [{ role: 'user', content: '漢'.repeat(320) }] });
  t.match(logs, [{ limit: 'maxBytes', bytes: 100 }]);
});

t.test('refuses a turn that can never fit without evicting anything', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(300) });
  await store.commit(session('b'), { expected: 0, messages: turn(600) });
  await t.rejects(store.commit(session('b'), { expected: 1, messages: turn(500) }), {
    message: 'the session needs 1100 bytes, but the memory store may hold only 1024: raise maxBytes or use a store on disk',
  });
  await t.rejects(store.pendingToolCalls.save(OWNER, ['call_1'], turn(1025)), {
    message: /^a turn with pending tool calls needs 1025 bytes/,
  });
  t.same(logs, []);
  t.equal((await store.load(session('a'))).version, 1);
  t.same(await loaded(store, session('b')), { version: 1, messages: turn(600) });
});

t.test('refuses a commit to a session that was evicted after it was loaded', async (t) => {
  const { store } = open({ maxSessions: 1 });
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  const { version } = await store.load(session('a'));
  await store.commit(session('b'), { expected: 0, messages: turn(100) });
  await t.rejects(store.commit(session('a'), { expected: version, messages: turn(100) }), VersionConflict);
});

t.test('S-42 evicts from the project that stores the most, so that no project pushes out another', async (t) => {
  const { store, clock, logs } = open({ maxSessions: 4, maxBytes: '1kb' });
  const small: SessionId = { ...session('small'), project: 'small' };
  const key = { project: 'small', route: '/', key: 'once' };
  const idempotency: IdempotencyRecord = { key, fingerprint: 'f1', result: { text: 'answer' } };
  await store.commit(small, { expected: 0, messages: turn(100), idempotency });
  clock.advance(1);
  for (let n = 0; n < 20; n++) {
    await store.commit(session(`s${n}`), { expected: 0, messages: turn(50) });
    await store.idempotency.put(record(`r${n}`, 200));
    await store.pendingToolCalls.save(OWNER, [`call_${n}`], turn(100));
  }
  t.equal((await store.info(small))?.turns, 1, 'the oldest session of all');
  t.same(await store.idempotency.claim(key, 'f1'), idempotency, 'a retry does not run again');
  t.ok(logs.length > 20);
  t.notOk(logs.some(({ project }) => project === 'small'));
});

t.test('neither evicts nor expires a session whose turn runs', async (t) => {
  const { store, clock, logs } = open({ ttl: '2h', maxSessions: 1 });
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  for (const turnId of ['turn_1', 'turn_1', 'turn_2']) await store.begin(session('a'), { turnId, input: [] });
  await store.commit(session('b'), { expected: 0, messages: turn(100) });
  clock.advance(3 * HOUR);
  t.match(logs, [{ limit: 'ttl' }], 'only the other one');
  await store.commit(session('a'), { turnId: 'turn_1', expected: 1, messages: turn(100) });
  await store.commit(session('c'), { expected: 0, messages: turn(100) });
  t.equal(logs.length, 1, 'another turn still runs');
  await store.abandon(session('a'), 'turn_2');
  await store.abandon(session('a'), 'turn_3');
  t.match(logs.slice(1), [{ limit: 'maxSessions', turns: 2 }]);
  t.equal((await store.info(session('c')))?.turns, 1);
});

t.test('applies the limits to pending tool calls: an own count and the shared bytes', async (t) => {
  const { store, clock, logs } = open({ maxSessions: 2, maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(200) });
  clock.advance(1);
  await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], turn(400));
  t.same(logs, [], 'two calls share one copy and do not count as sessions');
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

/** A record whose JSON has that many bytes. */
function record(key: string, bytes: number): IdempotencyRecord {
  const empty = { key: { project: 'acme', route: '/', key }, fingerprint: 'f1', result: { text: '' } };
  return { ...empty, result: { text: 'x'.repeat(bytes - JSON.stringify(empty).length) } };
}

t.test('keeps 100,000 idempotency records and evicts the oldest beyond that', async (t) => {
  const { store, logs } = open();
  for (let n = 0; n < 100_000; n++) await store.idempotency.put(record(`${n}`, 200));
  t.same(logs, []);
  await store.idempotency.put(record('one more', 200));
  t.equal(await store.idempotency.claim(record('0', 200).key, 'f1'), undefined);
  t.ok(await store.idempotency.claim(record('1', 200).key, 'f1'));
  t.match(logs, [{ level: 'warn', msg: /^evicted an idempotency record/, limit: '100,000 keys' }]);
});

t.test('applies `maxBytes` to idempotency records too and evicts the oldest entry of any kind', async (t) => {
  const { store, clock, logs } = open({ maxBytes: '1kb' });
  await store.idempotency.put(record('a', 300));
  clock.advance(1);
  await store.commit(session('a'), { expected: 0, messages: turn(300) });
  clock.advance(1);
  await store.commit(session('b'), { expected: 0, messages: turn(300), idempotency: record('b', 200) });
  t.match(logs, [{ limit: 'maxBytes', bytes: 300, turns: undefined }]);
  t.equal(await store.idempotency.claim(record('a', 300).key, 'f1'), undefined);
  await store.idempotency.put(record('c', 400));
  t.match(logs.slice(1), [{ limit: 'maxBytes', turns: 1 }], 'then the session, which is older than the other record');
  t.same(await store.idempotency.claim(record('b', 200).key, 'f1'), record('b', 200));

  await t.rejects(store.idempotency.put(record('d', 1025)), {
    message: /^the answer to a request with an Idempotency-Key needs/,
  });
  const tooLarge = { expected: 1, messages: turn(100), idempotency: record('d', 700) };
  await t.rejects(store.commit(session('b'), tooLarge), { message: /^the session needs 1100 bytes/ });
  t.equal(logs.length, 2);
  t.equal(await store.version(session('b')), 1);
});

t.test('counts metadata and summaries', async (t) => {
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
  t.equal(logs.length, 1, 'replaced metadata and summaries do not count');
  await store.commit(session('c'), { expected: 1, messages: turn(100) });
  t.match(logs.slice(1), [{ limit: 'maxBytes', bytes: 800 }]);
});

t.test('refuses metadata, summaries and sessions that can never fit', async (t) => {
  const { store, logs } = open({ maxBytes: '1kb' });
  await store.commit(session('a'), { expected: 0, messages: turn(600) });
  const tooLarge = { message: /^the session needs \d+ bytes, but the memory store may hold only 1024/ };
  await t.rejects(store.setMetadata(session('a'), { note: 'x'.repeat(500) }), tooLarge);
  await t.rejects(store.putSummary(session('a'), 1, { messages: 1, text: 'x'.repeat(500) }), tooLarge);
  await t.rejects(store.create(session('b'), { metadata: { note: 'x'.repeat(500) }, messages: turn(600) }), tooLarge);
  t.same(logs, []);
  t.match(await store.info(session('a')), { metadata: {} });
  t.equal((await store.load(session('a'))).summary, undefined);
  t.equal(await store.info(session('b')), undefined);
});

t.test('does not count a change of metadata as use of a session', async (t) => {
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

t.test('keeps the versions of at most `maxSessions` deleted sessions', async (t) => {
  const { store, logs } = open({ maxSessions: 2 });
  for (const key of ['a', 'b', 'c']) {
    await store.commit(session(key), { expected: 0, messages: turn(100) });
    t.equal(await store.delete(session(key)), true);
  }
  t.same(await Promise.all(['a', 'b', 'c'].map((key) => store.version(session(key)))), [0, 2, 2]);
  t.same(logs, [], 'a deletion is not logged as a loss');
});

t.test('releases everything when it stops', async (t) => {
  const { store, clock, stop, logs } = open();
  await store.commit(session('a'), { expected: 0, messages: turn(100) });
  await store.pendingToolCalls.save(OWNER, ['call_1'], turn(100));
  await store.idempotency.put(record('a', 200));
  await store.create(session('b'), { metadata: {}, messages: [] });
  await store.delete(session('b'));
  t.equal(clock.pending, 4);
  await stop();
  t.equal(clock.pending, 0);
  t.equal(await store.version(session('b')), 0);
  t.same(await loaded(store, session('a')), { version: 0, messages: [] });
  t.same(logs, []);
});

t.test('refuses what plugins would keep beyond maxStateBytes, and names it', async (t) => {
  const { store, clock } = open({ maxStateBytes: '1000b' });
  const put = (key: string, bytes: number, expiresIn?: number) =>
    store.state.change([{ entry: 'plugins.pager', key, text: JSON.stringify('x'.repeat(bytes - 2)), expiresIn }]);
  await put('a', 399, HOUR);
  await put('b', 399);
  const full = {
    name: 'StateFull',
    message:
      'plugins.pager cannot store more in ctx.state: all entries would keep 1103 bytes in memory, and 1000 is the limit; ' +
      'raise maxStateBytes or use a store on disk',
  };
  await t.rejects(put('c', 2), full);
  t.equal(await store.state.get('plugins.pager', 'c'), undefined);
  await put('b', 2);
  await put('c', 2);
  clock.advance(2 * HOUR);
  await put('d', 690);
  t.strictSame(
    (await store.state.list('plugins.pager', { prefix: '' })).map(({ key }) => key),
    ['b', 'c', 'd'],
  );
});
