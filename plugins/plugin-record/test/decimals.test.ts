import t from 'tap';
import { addDecimals } from '../src/replay/decimals.js';

t.test('sums are exact decimals', async (t) => {
  t.equal(addDecimals('0.1', '0.2'), '0.3');
  t.equal(addDecimals('0', '0.000000000001'), '0.000000000001');
  t.equal(addDecimals('0.75', '0.25'), '1');
  t.equal(addDecimals('99999999999999999999.5', '1.25'), '100000000000000000000.75');
  t.equal(addDecimals('10', '20'), '30');
  t.equal(addDecimals('0', '0'), '0');
  t.equal(Array.from({ length: 1000 }, () => '0.001').reduce(addDecimals), '1');
});
