import t from 'tap';
import { changeLines } from '../src/commands/print-changes.js';
import { CLOCK } from './recordings.js';

const tool = (name: string, description = CLOCK.description) => ({ ...CLOCK, name, description });

t.test('of changed tools, the names are printed', async (t) => {
  const before = [tool('a'), tool('b', 'x'.repeat(500)), tool('c'), tool('same')];
  const after = [tool('b', 'y'.repeat(500)), tool('d'), tool('e\u001b[31m'), tool('same')];
  t.strictSame(changeLines([{ kind: 'tools', step: 2, before, after }]), [
    '  step 2  tools     added d, e [31m; removed a, c; changed b',
  ]);
  t.strictSame(changeLines([{ kind: 'tools', step: 1, before: [], after: [CLOCK] }]), ['  step 1  tools     added clock']);
});
