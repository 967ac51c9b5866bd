import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { ModelError, type ModelEvent, type StateStore } from '@plugboard/kernel';
import { MemoryState } from '@plugboard/store-memory';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { PRICES, principal, UsageEntry, usage } from './support.js';

const ALL = { promptTokens: 1_000, cachedTokens: 600, cacheWriteTokens: 300, completionTokens: 500, reasoningTokens: 200 };

t.test('OB-9 each kind of tokens is charged at its price', async (t) => {
  const entry = await UsageEntry.start();
  await entry.call(usage(ALL));
  // 100 × 2 + 600 × 0.5 + 300 × 2.5 + 300 × 8 + 200 × 10 = 5,650 millionths
  t.match((await entry.report()).data, [{ agent: 'assistant', model: 'fast', calls: 1, cost: '0.00565', input_tokens: 1_000 }]);
  await entry.call(usage(ALL), { connection: 'slow' });
  const { data, total } = await entry.report();
  t.match(data[1], { model: 'slow', cost: '0.0015' }, 'parts without a price have that of the whole');
  t.match(total, { calls: 2, cost: '0.00715', cached_tokens: 1_200, cache_write_tokens: 600, reasoning_tokens: 400 });
});

t.test('a small price of many tokens stays exact', async (t) => {
  const entry = await UsageEntry.start({ config: { prices: { fast: { input: 0.000001, output: 0 } } } });
  for (let n = 0; n < 3; n++) await entry.call(usage({ promptTokens: 1 }));
  t.equal((await entry.report()).total.cost, '0.000000000003');
});

t.test('OB-10 a call without a price adds no cost, and is warned about once', async (t) => {
  const entry = await UsageEntry.start({ config: {} });
  const priced = { ...ALL, cost: 12.5 }; // as some providers report it
  await entry.call(usage(priced));
  await entry.call(usage(priced));
  t.match((await entry.report()).data, [{ calls: 2, cost: '0', unpriced_calls: 2, input_tokens: 2_000 }]);
  t.strictSame(
    entry.ctx.logs.filter(({ level }) => level === 'warn').map(({ connection }) => connection),
    ['fast'],
  );
});

t.test('OB-12 an answer that breaks off, or whose reader leaves, is charged once, by estimate', async (t) => {
  const entry = await UsageEntry.start();
  const text = (length: number): readonly ModelEvent[] => [{ type: 'text', text: 'x'.repeat(length) }];
  async function* broken(): AsyncGenerator<readonly ModelEvent[]> {
    yield text(400);
    throw new ModelError('its answer was cut off.');
  }
  await t.rejects(entry.call(broken()), { message: /cut off/ });
  t.match((await entry.report()).total, { calls: 1, output_tokens: 100, estimated_calls: 1 });

  let hasLeft = false;
  async function* endless(): AsyncGenerator<readonly ModelEvent[]> {
    try {
      for (;;) yield text(4);
    } finally {
      hasLeft = true;
    }
  }
  for await (const _ of entry.open(endless())) break;
  t.ok(hasLeft, 'the connector sees it');
  t.match((await entry.report()).total, { calls: 2, output_tokens: 101, estimated_calls: 2 });
});

t.test('an attempt without an answer is not a call', async (t) => {
  const entry = await UsageEntry.start();
  const refused = new ModelError('it answered with status 503.', { retryable: true });
  await t.rejects(entry.call({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(refused) }) }), refused);
  t.equal((await entry.report()).total.calls, 0);
});

t.test('an answer is charged when it ends, to the day in UTC of its end', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 30, 23, 59, 59));
  const entry = await UsageEntry.start({ clock });
  await entry.call();
  const answer = entry.open()[Symbol.asyncIterator]();
  await answer.next();
  clock.advance(2_000);
  await answer.next();
  const { data } = await entry.report('from=2026-11-01&to=2026-12-31&by=day,token');
  t.match(data, [
    { day: '2026-11-30', token: null, calls: 1 },
    { day: '2026-12-01', token: null, calls: 1 },
  ]);
  t.match(await entry.report(), { from: '2026-12-01', to: '2026-12-31', total: { calls: 1 } }, 'this month');
  t.match(await entry.report('to=2026-11-30'), { from: '2026-11-01', total: { calls: 1 } });
  await answer.return?.();
  t.equal((await entry.report()).total.calls, 1, 'nothing is charged twice');
});

t.test('a changed price counts for later calls only', async (t) => {
  const entry = await UsageEntry.start();
  const running = entry.open()[Symbol.asyncIterator]();
  await running.next();
  await entry.reload({ prices: { ...PRICES, fast: { input: 5, output: 5 } } });
  await running.next();
  t.equal((await entry.report()).total.cost, '2');
  await entry.call();
  t.match((await entry.report()).data, [{ calls: 2, cost: '7' }], 'the same row goes on');
});

t.test('every charged call is published', async (t) => {
  const seen: unknown[] = [];
  const listener = (message: unknown) => void seen.push(message);
  subscribe('plugboard.charge', listener);
  t.teardown(() => unsubscribe('plugboard.charge', listener));
  const entry = await UsageEntry.start({ config: { currency: 'EUR', prices: { fast: PRICES.fast } } });
  await entry.call();
  await entry.call(usage(), { agent: 'writer', connection: 'slow' });
  t.strictSame(seen, [
    { agent: 'assistant', model: 'fast', currency: 'EUR', cost: '2' },
    { agent: 'writer', model: 'slow', currency: 'EUR', cost: undefined },
  ]);
});

t.test('a full disk fails no turn: it counts in memory, and the entry is degraded', async (t) => {
  const clock = new ManualClock();
  const disk = new MemoryState(clock);
  let isFull = false;
  const state: StateStore = {
    get: (...key) => disk.get(...key),
    list: (...page) => disk.list(...page),
    change: async (...changes) => {
      if (isFull) throw new Error('the disk is full');
      return disk.change(...changes);
    },
  };
  const config = { prices: PRICES, budgets: [{ amount: 4, per: 'day' }] };
  const entry = await UsageEntry.start({ config, clock, state });
  t.strictSame(entry.ctx.lifecycle.health?.(), { state: 'ok' });
  isFull = true;
  await entry.call();
  await entry.write();
  t.match(entry.ctx.lifecycle.health?.(), { state: 'degraded', reason: /cannot be stored/ });
  await entry.call();
  t.match(await entry.report(), { total: { calls: 2, cost: '4' }, budgets: [{ spent: '4' }] });
  await t.rejects(entry.call(), { code: 'insufficient_quota' });
  isFull = false;
  clock.advance(1_000);
  await entry.write();
  t.strictSame(entry.ctx.lifecycle.health?.(), { state: 'ok' });
  t.match(await entry.report(), { total: { calls: 2, cost: '4' } });
});

t.test('OB-13 rows have names and ids, and nothing else of a call', async (t) => {
  const canary = 'canary-7d1f';
  const entry = await UsageEntry.start();
  const claims = { secret: canary };
  const request = { messages: [{ role: 'user', content: canary }], tools: [], params: {}, headers: { authorization: canary } };
  const call = { principal: principal('acme', 'tok_1', { claims, subject: canary }), request: request as never, session: canary };
  await entry.call(usage({}, canary), call);
  await entry.write();
  const stored = JSON.stringify(await entry.ctx.state.list());
  t.match(stored, /tok_1/);
  t.notMatch(stored + JSON.stringify([await entry.report(), entry.ctx.logs]), canary);
});
