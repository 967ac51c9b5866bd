import type { PluginState } from '@plugboard/kernel';
import { MemoryState } from '@plugboard/store-memory';
import { CapturedLog, ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { SharedSums } from '../src/ledger/shared-sums.js';
import { NO_SUMS, type Sums } from '../src/ledger/sums.js';
import { UsageEntry } from './support.js';

const one: Sums = { ...NO_SUMS, calls: 1, cost: 5n };

/** Several servers on one store, whose calls a test can let fail. */
async function servers(count: number) {
  const { ctx, clock } = await UsageEntry.start();
  const log = new CapturedLog();
  const broken = { get: (): void => undefined, before: (): void => undefined, after: (): void => undefined };
  const state: PluginState = {
    ...ctx.state,
    get: async (key) => {
      broken.get();
      return ctx.state.get(key);
    },
    list: (...page) => ctx.state.list(...page),
    compareAndSet: async (key, expected, value, options) => {
      broken.before();
      const isSet = await ctx.state.compareAndSet(key, expected, value, options);
      broken.after();
      return isSet;
    },
  };
  const ids = new SequentialIds();
  const sums = Array.from({ length: count }, () => new SharedSums(state, clock, ids, log.logger(clock)));
  const [first, second = first] = sums;
  if (!first || !second) throw new Error('no server');
  return { first, second, sums, clock, broken, log, state };
}

const fail = () => {
  throw new Error('the disk is full');
};
const settle = async (...sums: SharedSums[]) => {
  for (const one of sums) await one.write();
};

t.test('servers that share a store lose nothing of each other', async (t) => {
  const { sums, first, clock } = await servers(5);
  for (let round = 0; round < 20; round++) {
    for (const each of sums) each.add('a', one);
    await Promise.all(sums.map((each) => each.write()));
  }
  clock.advance(1_000);
  t.match(await first.of('a'), { calls: 100, cost: 500n });
});

t.test('what a server adds counts at once, and for the others a second later', async (t) => {
  const { first, second, clock } = await servers(2);
  t.match(await second.of('a'), { calls: 0 });
  first.add('a', one);
  t.match(await first.of('a'), { calls: 1 });
  clock.advance(500); // the write
  await settle(first);
  t.match(await second.of('a'), { calls: 0 });
  clock.advance(500);
  t.match(await second.of('a'), { calls: 1 });
});

t.test('a write whose answer was lost is not repeated', async (t) => {
  const { first, second, clock, broken } = await servers(2);
  first.add('a', one);
  broken.after = fail;
  await settle(first);
  t.ok(first.failure);
  first.add('a', one); // waits behind it
  broken.after = () => undefined;
  second.add('a', one);
  await settle(second, first);
  clock.advance(1_000);
  t.match(await first.of('a'), { calls: 3, cost: 15n });
  t.match(await second.of('a'), { calls: 3, cost: 15n });
});

t.test('while the store fails, everything counts in memory and is tried every second', async (t) => {
  const { first, clock, broken, log, state } = await servers(1);
  broken.before = fail;
  first.add('a', one);
  clock.advance(500);
  await settle(first);
  first.add('a', one);
  t.match(await first.of('a'), { calls: 2 });
  t.match(log.lines, [{ level: 'error', msg: /usage cannot be stored/ }], 'one line');
  broken.before = () => undefined;
  clock.advance(1_000);
  await settle(first);
  t.match(log.lines.at(-1), { msg: 'usage is stored again' });
  t.match(await state.get('a'), { sums: { calls: 2 } });
});

t.test('a store that cannot be read, or hangs, holds up no call', async (t) => {
  const { first, clock, broken, log } = await servers(1);
  first.add('a', one);
  broken.get = fail;
  t.match(await first.of('a'), { calls: 1 });
  t.match(log.lines, [{ level: 'error', msg: /usage cannot be read/ }]);
  const hanging = new SharedSums({ get: () => new Promise(() => {}) } as never, clock, new SequentialIds(), log.logger(clock));
  hanging.add('a', one);
  const asked = hanging.of('a');
  clock.advance(1_000);
  t.match(await asked, { calls: 1 });
});

t.test('the last sums are stored by the stop, and it says what is lost', async (t) => {
  const { first, second, broken, state } = await servers(2);
  first.add('a', one);
  await first.close();
  t.match(await state.get('a'), { sums: { calls: 1 } });
  second.add('a', one);
  broken.before = fail;
  await t.rejects(second.close(), /1 sums of usage could not be stored/);
});

t.test('rows expire after `keep`', async (t) => {
  const clock = new ManualClock();
  const state = new MemoryState(clock);
  const entry = await UsageEntry.start({ config: { keep: '31d' }, clock, state });
  await entry.call();
  await entry.write();
  const count = async () => (await entry.report('from=2026-01-01&to=2026-12-31')).total.calls;
  clock.advance(30 * 86_400_000);
  t.equal(await count(), 1);
  clock.advance(86_400_000);
  t.equal(await count(), 0);
});
