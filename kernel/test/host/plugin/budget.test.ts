import { Budget } from '@plugboard/kernel/contracts';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { Budgets } from '../../../src/host/plugin/budgets.js';

const OPTIONS = { name: 'uploads', unit: 'bytes', limit: 100, setting: 'plugins.uploads.memory' };

t.test('a reservation beyond the limit is refused, and returned bytes can be reserved again', async (t) => {
  const budget = new Budget(OPTIONS);
  t.ok(budget.reserve([], 60));
  t.notOk(budget.reserve([], 41));
  t.ok(budget.reserve([], 40));
  budget.release([], 100);
  t.ok(budget.reserve([], 1));
  t.same(budget.report, { ...OPTIONS, used: 1, cached: 0, peak: 100, refused: 1 });
});

t.test('an owner gets three quarters, the next one three quarters of the rest', async (t) => {
  const budget = new Budget(OPTIONS);
  t.equal(budget.share(1), 75);
  t.notOk(budget.reserve(['a'], 76));
  t.ok(budget.reserve(['a'], 75));
  t.notOk(budget.reserve(['b'], 19));
  t.ok(budget.reserve(['b'], 18));
  t.ok(budget.reserve(['c'], 1), 'and there is always some left');
  budget.release(['a'], 75);
  t.ok(budget.reserve(['b'], 40), 'a share grows with what is free');
});

t.test('an owner inside of another one cannot use up the share of both', async (t) => {
  const budget = new Budget(OPTIONS);
  t.equal(budget.share(2), 50);
  t.ok(budget.reserve(['house', '1'], 50));
  t.notOk(budget.reserve(['house', '1'], 1));
  t.ok(budget.reserve(['house', '2'], 18));
  t.ok(budget.reserve(['other', '1'], 10));
  t.same(budget.used, 78);
});

t.test('a small amount only needs to fit', async (t) => {
  const budget = new Budget(OPTIONS);
  t.ok(budget.reserve(['a'], 75));
  t.notOk(budget.reserve(['a'], 5));
  t.ok(budget.reserve(['a'], 5, { small: true }));
  t.notOk(budget.reserve(['a'], 21, { small: true }));
});

t.test('what waits gets its amount when there is enough, and those behind it do not wait for it', async (t) => {
  const budget = new Budget(OPTIONS);
  const { signal } = new AbortController();
  t.ok(budget.reserve(['a'], 75));
  const granted: string[] = [];
  const large = budget.wait(['b'], 40, signal).then(() => granted.push('large'));
  const small = budget.wait(['b'], 30, signal).then(() => granted.push('small'));
  await budget.wait(['c'], 1, signal);
  budget.release(['a'], 25);
  await small;
  t.same(granted, ['small']);
  budget.release(['a'], 50);
  await large;
  t.equal(budget.used, 71);

  const leaving = new AbortController();
  const left = budget.wait(['b'], 90, leaving.signal);
  leaving.abort(new Error('too late'));
  await t.rejects(left, { message: 'too late' });
  budget.release(['b'], 70);
  t.match(budget.report, { used: 1, refused: 1 });
});

t.test('what a cache holds is evicted when it is needed, and never in the way', async (t) => {
  const budget = new Budget(OPTIONS);
  const evicted: number[] = [];
  budget.onShortage((amount) => {
    evicted.push(amount);
    budget.cache(-amount);
  });
  budget.cache(90);
  t.ok(budget.reserve(['a'], 75), 'as much as without it');
  t.match(budget.report, { used: 75, cached: 25, peak: 100 });
  budget.cache(10);
  budget.resize(80);
  t.same(evicted, [65, 10, 20]);
  t.match(budget.report, { used: 75, cached: 5 });
});

t.test('a budget that refuses is logged once a minute, with its setting', async (t) => {
  const clock = new ManualClock();
  const log = new CapturedLog();
  const budgets = new Budgets(clock, log.logger(clock));
  const budget = budgets.create(OPTIONS);
  budgets.add(new Budget({ ...OPTIONS, name: 'log lines' }));
  for (const seconds of [0, 59, 1]) {
    clock.advance(seconds * 1000);
    budget.reserve([], 101);
  }
  t.match(log.lines, [
    { level: 'warn', msg: /^limit reached: uploads; raise plugins\.uploads\.memory/, budget: { refused: 1 } },
    { budget: { refused: 3 } },
  ]);
  t.equal(log.lines.length, 2);
  t.same(
    budgets.reports().map(({ name }) => name),
    ['memory of callers', 'uploads', 'log lines'],
  );
});
