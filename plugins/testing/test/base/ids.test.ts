import t from 'tap';
import { SequentialIds } from '../../src/index.js';

t.test('sequential ids count from 1, whatever form they are asked for in', async (t) => {
  const ids = new SequentialIds();
  t.same([ids.base62(4), ids.hex(6), ids.base62(2)], ['0001', '000002', '03']);
});

t.test('the given fractions are returned in order, repeatedly', async (t) => {
  const ids = new SequentialIds([0, 0.25]);
  t.same([ids.fraction(), ids.fraction(), ids.fraction()], [0, 0.25, 0]);
  t.equal(new SequentialIds().fraction(), 0.5);
});
