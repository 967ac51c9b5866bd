import { checkOptions, pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { AROUND, PRICES } from './support.js';

const faultsOf = (config: object) => checkOptions(plugin, config, AROUND).faults;

t.test('everything but the entry itself is optional', async (t) => {
  t.strictSame(checkOptions(plugin, {}, AROUND).config, { currency: 'USD', prices: {}, budgets: [], keep: '400d' });
});

t.test('mistakes of the file are found before the start', async (t) => {
  const cases: [object, RegExp][] = [
    [{ prices: { fsat: { input: 1, output: 1 } } }, /prices\.fsat: unknown model connection "fsat", did you mean "fast"\?/],
    [{ prices: { fast: { input: 1 } } }, /output/],
    [{ prices: { fast: { input: 0.1234567, output: 1 } } }, /prices\.fast\.input: has more than 6 decimals/],
    [{ prices: { fast: { input: 1, output: 1, reasoning: 1e-7 } } }, /prices\.fast\.reasoning: has more than 6 decimals/],
    [{ prices: { fast: { input: -1, output: 1 } } }, /prices\.fast\.input/],
    [{ currency: '' }, /currency/],
    [{ keep: '30d' }, /keep: must be at least 31d/],
    [{ prices: PRICES, budgets: [{ amount: -1, per: 'day' }] }, /budgets\[0\]\.amount/],
    [{ prices: PRICES, budgets: [{ amount: 0.1234567, per: 'day' }] }, /budgets\[0\]\.amount: has more than 6 decimals/],
    [{ prices: PRICES, budgets: [{ amount: 1, per: 'week' }] }, /budgets\[0\]\.per/],
    [
      { prices: PRICES, budgets: [{ amount: 1, per: 'day', project: 'acmee' }] },
      /unknown project "acmee", did you mean "acme"\?/,
    ],
    [{ prices: PRICES, budgets: [{ amount: 1, per: 'day', agent: 'writr' }] }, /unknown agent "writr", did you mean "writer"\?/],
    [{ prices: PRICES, budgets: [{ amount: 1, per: 'day', token: 'ci', each: 'token' }] }, /budgets\[0\]\.each: .*remove one/],
    [
      {
        prices: PRICES,
        budgets: [
          { amount: 1, per: 'day' },
          { amount: 2, per: 'day' },
        ],
      },
      /budgets\[1\]\.per: budgets\[0\] covers the same calls/,
    ],
    [
      { prices: { fast: PRICES.fast }, budgets: [{ amount: 1, per: 'day' }] },
      /budgets: needs a price for every model connection; add "slow" under "prices"/,
    ],
  ];
  for (const [config, wanted] of cases) t.match(faultsOf(config).join('\n'), wanted, JSON.stringify(config));
  const disabled = { ...AROUND, disabled: () => ['slow'] };
  const one = { prices: { fast: PRICES.fast }, budgets: [{ amount: 1, per: 'day', project: 'default' }] };
  t.strictSame(checkOptions(plugin, one, disabled).faults, [], 'a disabled connection needs no price');
});

pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), config: { prices: PRICES }, check: AROUND });
