import { OPEN } from '@plugboard/kernel/contracts';
import t from 'tap';
import { PRICES, principal, UsageEntry, usage } from './support.js';

const ADMIN = { scopes: ['models:read', 'admin'] } as const;
const anna = principal('acme', 'tok_anna');
const ben = principal('acme', 'tok_ben');
const clara = principal('beta', 'tok_clara');
const jwt = principal('acme', 'jwt_shared', { claims: {} }); // without a subject

async function charged() {
  const config = {
    prices: PRICES,
    budgets: [
      { amount: 9, per: 'day' },
      { amount: 8, per: 'day', project: 'acme' },
      { amount: 7, per: 'day', project: 'beta' },
    ],
  };
  const entry = await UsageEntry.start({ config });
  for (const caller of [anna, ben, clara, jwt, OPEN]) await entry.call(usage(), { principal: caller });
  return entry;
}

t.test('a caller sees its own calls, an admin those of its project, an admin of default all', async (t) => {
  const entry = await charged();
  const seen = async (caller: typeof anna) => {
    const { total, budgets } = await entry.report('', caller);
    return [total.calls, budgets.map(({ amount }) => amount).join()];
  };
  t.strictSame(await seen(anna), [1, '9,8']);
  t.strictSame(await seen(jwt), [0, '9,8'], 'tokens without a subject see nothing');
  t.strictSame(await seen(principal('acme', 'tok_admin', ADMIN)), [3, '9,8']);
  t.strictSame(await seen(principal('beta', 'tok_admin', ADMIN)), [1, '9,7']);
  t.strictSame(await seen(principal('default', 'tok_admin', ADMIN)), [5, '9,8,7']);
  t.strictSame(await seen(OPEN), [5, '9,8,7']);
  t.strictSame(await seen(principal('beta', 'tok_anna')), [0, '9,7'], 'an id of another project is another token');
});

t.test('rows are added up by the keys that were asked for', async (t) => {
  const entry = await charged();
  t.match((await entry.report('by=project')).data, [
    { project: 'acme', calls: 3, cost: '6' },
    { project: 'beta', calls: 1 },
    { project: 'default', calls: 1 },
  ]);
  t.match((await entry.report('by=token&from=2026-01-01&to=2026-01-01')).data, [
    { token: null },
    { token: { id: 'jwt_shared' } },
    { token: { id: 'tok_anna', name: 'name of tok_anna' } },
    {},
    {},
  ]);
  const { data, total } = await entry.report('by=day,project,token,agent,model');
  t.equal(data.length, 5);
  t.strictSame(Object.keys(data[0] ?? {}), ['day', 'project', 'token', 'agent', 'model', ...Object.keys(total)]);
  t.match(await entry.report('from=2026-02-01&to=2026-02-28'), { data: [], total: { calls: 0, cost: '0' } });
});

t.test('an invalid query is a 400 that names the parameter', async (t) => {
  const entry = await charged();
  const cases: [string, string][] = [
    ['from=yesterday', 'from'],
    ['from=2026-02-30', 'from'],
    ['from=2026-02-01&to=2026-01-31', 'from'],
    ['to=2026-1-1', 'to'],
    ['to=2026-01-01&to=2026-01-02', 'to'],
    ['by=user', 'by'],
    ['by=', 'by'],
    ['by=day,day', 'by'],
  ];
  for (const [query, param] of cases) {
    const error: unknown = await entry.report(query).catch((refused) => refused);
    t.match(error, { status: 400, body: { error: { param } } }, query);
  }
});

t.test('sums of another currency are not added', async (t) => {
  const entry = await UsageEntry.start();
  await entry.call();
  await entry.stop();
  const config = { currency: 'EUR', prices: PRICES, budgets: [{ amount: 9, per: 'day' }] };
  const { clock, ctx } = entry;
  const later = await UsageEntry.start({ config, clock, state: ctx.stateStore });
  await later.call();
  t.match(await later.report(), {
    currency: 'EUR',
    total: { calls: 2, cost: '2', unpriced_calls: 1 },
    budgets: [{ spent: '2' }],
  });
});
