import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { PRICES, principal, UsageEntry, usage } from './support.js';

/** A call costs 2. */
const budgets = (...list: object[]) => ({ prices: PRICES, budgets: list });
const anna = principal('acme', 'tok_anna');
const ben = principal('acme', 'tok_ben');
const clara = principal('beta', 'tok_clara');

t.test('OB-11 50 parallel turns exceed a budget by at most one call each', async (t) => {
  const entry = await UsageEntry.start({ config: budgets({ amount: 100, per: 'day' }) });
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  let refused = 0;
  async function* answer() {
    asked++;
    await gate.promise;
    yield* usage();
  }
  const turn = async () => {
    for (;;) {
      try {
        await entry.call(answer());
      } catch {
        refused++;
        return;
      }
    }
  };
  for (let n = 0; n < 40; n++) await entry.call();
  t.match((await entry.report()).budgets, [{ spent: '80', left: '20' }]);
  const turns = Array.from({ length: 50 }, turn);
  gate.resolve();
  await Promise.all(turns);
  const [{ spent } = {}] = (await entry.report()).budgets;
  t.comment(`50 parallel turns: amount 100, spent ${spent}, calls ${asked}, refused ${refused}`);
  t.equal(refused, 50);
  t.ok(Number(spent) >= 100 && Number(spent) <= 100 + 50 * 2, `spent ${spent}`);
});

t.test('a spent budget refuses before anything is sent, until its period ends', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 28, 18));
  const config = budgets({ amount: 2, per: 'day' }, { amount: 6, per: 'month' }, { amount: 1_000, per: 'total' });
  const entry = await UsageEntry.start({ config, clock });
  let sent = 0;
  async function* answer() {
    sent++;
    yield* usage();
  }
  await entry.call(answer());
  await t.rejects(entry.call(answer()), {
    code: 'insufficient_quota',
    message:
      /^The budget of 2 USD per day is spent\. It begins again at 2026-11-29T00:00:00.000Z; the operator can raise `plugins\.test\.budgets`\.$/,
    options: { retryAfter: 6 * 3_600 },
  });
  await t.rejects(entry.call(answer()));
  t.equal(sent, 1);
  t.equal(entry.ctx.logs.filter(({ msg }) => String(msg).startsWith('a budget is spent')).length, 1, 'logged once');
  clock.advance(6 * 3_600_000);
  await entry.call(answer());
  clock.advance(86_400_000);
  await entry.call(answer());
  await t.rejects(entry.call(answer()), { message: /2 USD per day/ });
  clock.advance(86_400_000);
  t.match((await entry.report()).budgets, [
    { per: 'day' },
    { per: 'month', spent: '0' },
    { per: 'total', spent: '6', resets_at: null },
  ]);
  await entry.call(answer());
});

t.test('budgets cover what they name, and each token may have its own', async (t) => {
  const config = budgets(
    { amount: 4, per: 'day', project: 'acme' },
    { amount: 2, per: 'total', agent: 'writer' },
    { amount: 2, per: 'month', token: 'name of tok_clara' },
  );
  const entry = await UsageEntry.start({ config });
  await entry.call(usage(), { principal: anna });
  await entry.call(usage(), { principal: ben, agent: 'writer' });
  await t.rejects(entry.call(usage(), { principal: anna }), { message: /4 USD per day for the project acme/ });
  await t.rejects(entry.call(usage(), { principal: clara, agent: 'writer' }), {
    message: 'The budget of 2 USD for the agent writer is spent. The operator can raise `plugins.test.budgets`.',
    options: { retryAfter: undefined },
  });
  await entry.call(usage(), { principal: clara });
  await t.rejects(entry.call(usage(), { principal: clara }), { message: /per month for the token name of tok_clara/ });

  const each = await UsageEntry.start({ config: budgets({ amount: 2, per: 'day', each: 'token' }) });
  for (const caller of [anna, ben]) await each.call(usage(), { principal: caller });
  for (const caller of [anna, ben]) await t.rejects(each.call(usage(), { principal: caller }), { message: /each token/ });
  await each.call(usage(), { principal: clara });
  t.match((await each.report('', anna)).budgets, [{ each: 'token', spent: '2', left: '0' }]);
});

t.test('servers on one store share budgets, a second late', async (t) => {
  const config = budgets({ amount: 4, per: 'day' });
  const first = await UsageEntry.start({ config });
  const { clock } = first;
  const second = await UsageEntry.start({ config, clock, state: first.ctx.stateStore });
  await first.call();
  await first.call();
  await first.write();
  clock.advance(1_000);
  await t.rejects(second.call(), { code: 'insufficient_quota' });
});

t.test('a restart and a changed amount keep what was spent', async (t) => {
  const first = await UsageEntry.start({ config: budgets({ amount: 2, per: 'month' }) });
  await first.call();
  await first.stop();
  const { clock, ctx } = first;
  const second = await UsageEntry.start({ config: budgets({ amount: 2, per: 'month' }), clock, state: ctx.stateStore });
  await t.rejects(second.call());
  await second.reload(budgets({ amount: 5, per: 'month' }));
  await second.call();
  t.match((await second.report()).budgets, [{ amount: '5', spent: '4', left: '1' }]);
});

t.test('a new budget begins with what its period has had, once', async (t) => {
  const clock = new ManualClock(Date.UTC(2026, 10, 27));
  const first = await UsageEntry.start({ clock });
  await first.call(usage(), { principal: anna });
  clock.advance(86_400_000);
  await first.call(usage(), { principal: anna });
  await first.call(usage(), { principal: clara });
  await first.stop();
  const list = [
    { amount: 100, per: 'day' },
    { amount: 100, per: 'month', project: 'acme' },
    { amount: 100, per: 'total' },
  ];
  const spent = async (entry: UsageEntry) => (await entry.report()).budgets.map((budget) => budget.spent);
  const state = first.ctx.stateStore;
  const second = await UsageEntry.start({ config: budgets(...list), clock, state });
  t.strictSame(await spent(second), ['4', '4', '6']);
  await second.stop();
  const third = await UsageEntry.start({ config: budgets(...list), clock, state });
  t.strictSame(await spent(third), ['4', '4', '6']);

  await third.reload({ prices: PRICES });
  await third.call(usage(), { principal: anna });
  await third.write();
  await third.reload(budgets(...list));
  await third.write();
  clock.advance(1_000);
  t.strictSame(await spent(third), ['6', '6', '8'], 'also after it was gone');
});
