import { MemoryState } from '@plugboard/store-memory';
import { ManualClock, testContext } from '@plugboard/testing';
import t from 'tap';
import { SessionStores } from '../../../src/contracts/store/session-store.js';
import { definePlugin, type PluginContext, type PluginState, StateFull } from '../../../src/index.js';
import { composed, plugin, problemsOf } from '../distribution.js';

/** The state of an entry, and its context. */
function open(
  register: (ctx: PluginContext) => void = () => undefined,
  clock = new ManualClock(),
  store = new MemoryState(clock),
  entry = 'plugins.pager',
) {
  let state: PluginState | undefined;
  const definition = definePlugin({
    name: 'pager',
    apiVersion: 1,
    summary: 'A plugin of a test',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      state = ctx.state;
      register(ctx);
      return { stop() {} };
    },
  });
  testContext(definition, { entry, clock, state: store });
  if (!state) throw new Error('the plugin was not registered');
  return state;
}

t.test('ctx.state keeps JSON values under keys', async (t) => {
  const state = open();
  for (const value of [1, 'text', null, false, [1, { a: 'b' }], {}]) {
    await state.put('key', value);
    t.strictSame(await state.get('key'), value);
  }
  const stored = { seen: ['a'] };
  await state.put('list', stored);
  stored.seen.push('b');
  t.strictSame(await state.get('list'), { seen: ['a'] }, 'a copy');
  await state.put('list/2', 2);
  t.strictSame(await state.list('list'), [
    { key: 'list', value: { seen: ['a'] } },
    { key: 'list/2', value: 2 },
  ]);
  t.strictSame(await state.list('', { after: 'key', limit: 1 }), [{ key: 'list', value: { seen: ['a'] } }]);
  await state.delete('list');
  t.equal(await state.get('list'), undefined);
});

t.test('ctx.state refuses what exceeds its limits, and names them', async (t) => {
  const state = open();
  await state.put('k'.repeat(512), 'x'.repeat(64 * 1024 - 2));
  const attempts: readonly [attempt: () => Promise<unknown>, message: string | RegExp][] = [
    [() => state.put('', 1), 'plugins.pager used an invalid key of ctx.state: it is empty'],
    [() => state.get('k'.repeat(513)), 'plugins.pager used an invalid key of ctx.state: it has 513 bytes, and 512 is the limit'],
    [() => state.delete('a\nb'), 'plugins.pager used an invalid key of ctx.state: it contains a control character'],
    [() => state.list('a\ud800'), 'plugins.pager used an invalid key of ctx.state: it contains an unpaired surrogate'],
    [() => state.put(7 as never, 1), 'plugins.pager used an invalid key of ctx.state: it is of type number, not a string'],
    [
      () => state.put('big', 'x'.repeat(64 * 1024 - 1)),
      'plugins.pager put a value of 65537 bytes into ctx.state, under "big", and 65536 is the limit',
    ],
    [() => state.put('huge', 'x'.repeat(100_000_000)), /under "huge", and 65536 is the limit/],
    [() => state.put('none', undefined), /is not JSON, under "none": it is undefined/],
    [() => state.put('code', () => 1), /is not JSON, under "code": it is a function/],
    [() => state.put('number', 1n), /is not JSON, under "number": .*BigInt/],
  ];
  for (const [attempt, message] of attempts) await t.rejects(attempt(), { message });
  t.throws(() => state.changes({ ok: 1, '': 2 }), { code: 'STATE_KEY_INVALID' });
  t.equal((await state.list()).length, 1, 'nothing was stored');
});

t.test('an entry has up to 1,000,000 keys', async (t) => {
  t.equal(
    new StateFull('plugins.pager').message,
    'plugins.pager cannot store more in ctx.state: it already has 1000000 keys, which is the limit; delete some',
  );
});

t.test('a key of ctx.state expires', async (t) => {
  const clock = new ManualClock();
  const state = open(() => undefined, clock);
  await state.put('code', 'a', { expiresIn: 1_000 });
  await state.apply(state.changes({ seen: 1, old: undefined }, { expiresIn: 2_000 }));
  t.equal(await state.compareAndSet('claim', undefined, 1, { expiresIn: 3_000 }), true);
  const left: unknown[] = [];
  for (let second = 0; second < 4; second++, clock.advance(1_000)) left.push((await state.list()).map(({ key }) => key));
  t.strictSame(left, [['claim', 'code', 'seen'], ['claim', 'seen'], ['claim'], []]);
  for (const expiresIn of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    await t.rejects(state.put('code', 1, { expiresIn }), {
      code: 'STATE_EXPIRY_INVALID',
      message: `plugins.pager put a value into ctx.state that expires in ${expiresIn} ms, under "code"; expiresIn is a positive integer`,
    });
  }
});

t.test('apply stores several changes of the entry, all or nothing', async (t) => {
  const state = open();
  await state.apply(state.changes({ offset: 7, seen: [1] }));
  await state.apply(state.changes({ offset: 8, seen: undefined }));
  await state.apply([]);
  t.strictSame(await state.list(), [{ key: 'offset', value: 8 }]);
  await t.rejects(state.apply([{ entry: 'plugins.other', key: 'offset', text: '9' }]), {
    code: 'STATE_FOREIGN',
    message: 'plugins.pager cannot apply changes that the ctx.state of plugins.other has made; each entry applies its own',
  });
  t.equal(await state.get('offset'), 8);
});

t.test('compareAndSet decides between writers by the value that they have read', async (t) => {
  const state = open();
  t.strictSame(await Promise.all([1, 2, 3].map((n) => state.compareAndSet('key', undefined, { n }))), [true, false, false]);
  t.equal(await state.compareAndSet('key', { n: 2 }, 'changed'), false);
  t.equal(await state.compareAndSet('key', { n: 1 }, 'changed'), true);
  t.equal(await state.get('key'), 'changed');
  await t.rejects(state.compareAndSet('', undefined, 1), { code: 'STATE_KEY_INVALID' });
});

t.test('apply compares with the values that changes expect', async (t) => {
  const state = open();
  await state.put('offset', 7);
  const move = (from: unknown) => state.changes({ offset: 8, seen: 1 }, { expected: { offset: from, seen: undefined } });
  t.strictSame(move(6), [
    { entry: 'plugins.pager', key: 'offset', text: '8', expected: '6' },
    { entry: 'plugins.pager', key: 'seen', text: '1', expected: null },
  ]);
  t.strictSame(await Promise.all([state.apply(move(6)), state.apply(move(7)), state.apply(move(7))]), [false, true, false]);
  t.strictSame(await state.list(), [
    { key: 'offset', value: 8 },
    { key: 'seen', value: 1 },
  ]);
});

t.test('exclusive lets one holder of a key after the other have it, in order', async (t) => {
  const state = open();
  const { signal } = new AbortController();
  const order: string[] = [];
  const first = await state.exclusive('poll', signal);
  const waits = new AbortController();
  const left = state.exclusive('poll', waits.signal);
  const others = ['second', 'third'].map(async (name) => {
    const held = await state.exclusive('poll', signal);
    order.push(name);
    await Promise.resolve();
    order.push(`${name} ends`);
    await held.release();
  });
  await (await state.exclusive('other', signal)).release();
  waits.abort(new Error('enough'));
  await t.rejects(left, { message: 'enough' });
  t.strictSame(order, []);
  await first.release();
  await Promise.all(others);
  t.strictSame(order, ['second', 'second ends', 'third', 'third ends']);
  t.equal(first.signal.aborted, false);
  await (await state.exclusive('poll', signal)).release();
  await t.rejects(state.exclusive('poll', waits.signal), { message: 'enough' });
  await t.rejects(state.exclusive('', signal), { code: 'STATE_KEY_INVALID' });
});

t.test('entries hold keys of their own, and a reload shares what its entry holds', async (t) => {
  const clock = new ManualClock();
  const store = new MemoryState(clock);
  const { signal } = new AbortController();
  const held = await open(undefined, clock, store).exclusive('poll', signal);
  await open(undefined, clock, store, 'plugins.other').exclusive('poll', signal);
  let isNext = false;
  const next = open(undefined, clock, store).exclusive('poll', signal);
  void next.then(() => {
    isNext = true;
  });
  await new Promise(setImmediate);
  t.equal(isNext, false);
  await held.release();
  await next;
});

t.test('changes() are for a turn, and belong to the entry', async (t) => {
  const state = open();
  t.strictSame(state.changes({ offset: 7, old: undefined }), [
    { entry: 'plugins.pager', key: 'offset', text: '7' },
    { entry: 'plugins.pager', key: 'old', text: undefined },
  ]);
  t.equal(await state.get('offset'), undefined, 'nothing has changed yet');
});

/** A store that is only usable between its start and its stop. */
const STORE = plugin({
  name: 'store',
  register: `
    let values;
    const open = () => { if (!values) throw new Error('the store is not open'); return values; };
    const state = {
      get: async (entry, key) => open().get(entry + key),
      change: async (changes) => { for (const { entry, key, text } of changes) open().set(entry + key, text); return true; },
      list: async () => { open(); return []; },
    };
    const methods = ['load','version','begin','commit','abandon','recover','create','info','find','list','setMetadata','turns','putSummary','fork','delete','health'];
    const store = Object.fromEntries(methods.map((name) => [name, () => {}]));
    const shared = { hold: async (name) => { ctx.log.info('held ' + name.length); return { release() {} }; } };
    ctx.contribute(SessionStores, { ...store, pendingToolCalls: {}, documents: {}, idempotency: {}, approvals: {}, state, shared });
    return { start() { values = new Map(); }, stop() { values = undefined; } };`,
}).replace('import {', 'import { SessionStores,');
/** A server with an entry that uses `ctx.state` like this. */
function withPager(register: string) {
  return {
    'plugboard.yaml': 'transports: { pager: { use: ./pager.js } }\nsessions: { use: ./store.js }\n',
    'pager.js': plugin({ name: 'pager', register }),
    'store.js': STORE,
  };
}

t.test('an entry that takes ctx.state starts after the store and stops before it', async (t) => {
  const { server, log } = await composed(
    t,
    withPager(`
      const { state } = ctx;
      return {
        async start() { await state.put('offset', 1); },
        async stop() { ctx.log.info('kept ' + await state.get('offset')); },
      };`),
  );
  await server.start();
  t.strictSame(await server.stop(), []);
  t.match(
    log.lines.map(({ msg }) => msg),
    ['kept 1'],
  );
});

t.test('exclusive asks the store that several servers share', async (t) => {
  const { server, log } = await composed(
    t,
    withPager(`
      const { state } = ctx;
      return { start: () => state.exclusive('k'.repeat(512), AbortSignal.timeout(30_000)) };`),
  );
  await server.start();
  t.match(
    log.lines.map(({ msg }) => msg),
    ['held 64'],
  );
});

t.test('says that ctx.state was used before what keeps it has started', async (t) => {
  const first = await composed(t, withPager(`return { start: () => ctx.state.get('a') };`));
  await t.rejects(first.server.start(), {
    message: /pager uses ctx\.state before what keeps it has started; write const \{ state \} = ctx in register\(\)/,
  });
});

t.test('an entry can take ctx.state anywhere, once what keeps it has started', async (t) => {
  const later = await composed(
    t,
    withPager(`return {
      async reload() { await ctx.state.put('a', 1); ctx.log.info('kept ' + await ctx.state.get('a')); },
    };`),
  );
  await later.server.start();
  await later.server.reload();
  t.match(
    later.log.lines.map(({ msg }) => msg),
    ['kept 1'],
  );
});

t.test('says that ctx.state was used in register', async (t) => {
  const { server } = await composed(
    t,
    withPager(`const read = ctx.state.get('a'); read.catch(() => {}); return { start: () => read };`),
  );
  await t.rejects(server.start(), { message: /cannot use ctx\.state in register\(\); use it from start\(\) on/ });
});

t.test('says that nothing keeps the state', async (t) => {
  const { 'store.js': _, ...files } = withPager('ctx.state; return { start() {} };');
  const found = await problemsOf(t, { ...files, 'plugboard.yaml': 'transports: { pager: { use: ./pager.js } }\n' });
  t.match(found, [`needs ${SessionStores.id}, which no entry of this file provides`]);
});
