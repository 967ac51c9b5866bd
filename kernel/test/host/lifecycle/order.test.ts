import t from 'tap';
import { startOrder } from '../../../src/host/lifecycle/order.js';

const [a, b, c] = [Symbol('a'), Symbol('b'), Symbol('c')];

const entry = (id: string, contributes: symbol[], reads: symbol[]) => ({
  id,
  contributes: new Set(contributes),
  reads: new Set(reads),
});

function ordered(...entries: ReturnType<typeof entry>[]): string {
  const result = startOrder(entries);
  return 'order' in result
    ? result.order.map(({ id }) => id).join(' ')
    : `cycle ${result.cycle.map(({ reader }) => reader.id).join(' ')}`;
}

t.equal(ordered(entry('reader', [], [a]), entry('giver', [a], [])), 'giver reader', 'a reader starts after who contributes');
t.equal(
  ordered(entry('http', [], [a]), entry('chat', [a], [b]), entry('runtime', [b], [c]), entry('model', [c], [])),
  'model runtime chat http',
  'also over several steps',
);
t.equal(ordered(entry('x', [], []), entry('y', [], []), entry('z', [], [])), 'x y z', 'what is open is decided by the file');
t.equal(
  ordered(entry('http', [], [a]), entry('chat', [a], []), entry('metrics', [], [])),
  'chat metrics http',
  'R-053 what others lead to starts last, also after those that it does not read',
);
t.equal(
  ordered(entry('self', [a], [a]), entry('other', [a], [])),
  'other self',
  'an entry may read a point that it contributes to',
);
t.equal(ordered(entry('reader', [], [a])), 'reader', 'a point without contributors delays no reader');
t.equal(
  ordered(entry('out', [], [a]), entry('x', [a], [b]), entry('y', [b], [c]), entry('z', [c], [a])),
  'cycle x y z',
  'a circle is named without the way that led into it',
);

t.test('each step of a cycle names the reader, the point and the contributor', async (t) => {
  const result = startOrder([entry('x', [a], [b]), entry('y', [b], [a])]);
  t.match(result, {
    cycle: [
      { reader: { id: 'x' }, point: b, contributor: { id: 'y' } },
      { reader: { id: 'y' }, point: a, contributor: { id: 'x' } },
    ],
  });
});
