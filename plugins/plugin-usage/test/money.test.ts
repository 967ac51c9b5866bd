import fc from 'fast-check';
import t from 'tap';
import { millionthsOf, moneyOf, parseMoney, textOf } from '../src/money/money.js';

t.test('numbers of the file are read as they are written, with at most 6 decimals', async (t) => {
  const cases: [number, bigint | undefined][] = [
    [0, 0n],
    [3, 3_000_000n],
    [0.1, 100_000n],
    [2.5, 2_500_000n],
    [0.000001, 1n],
    [123456.654321, 123_456_654_321n],
    [0.1234567, undefined],
    [0.0000001, undefined],
    [1e21, undefined],
    [-1, undefined],
    [Number.NaN, undefined],
  ];
  for (const [value, wanted] of cases) t.equal(millionthsOf(value), wanted, String(value));
});

t.test('sums are exact', async (t) => {
  t.equal(textOf(moneyOf(0.1) + moneyOf(0.2)), '0.3');
  let sum = 0n;
  for (let i = 0; i < 1_000_000; i++) sum += 1n; // a million times the smallest amount
  t.equal(textOf(sum), '0.000001');
  t.equal(textOf(0n), '0');
  fc.assert(fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), (money) => parseMoney(textOf(money)) === money));
});
