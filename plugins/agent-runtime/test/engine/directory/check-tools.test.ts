import type { ToolSource } from '@plugboard/kernel';
import t from 'tap';
import { checkTools } from '../../../src/engine/directory/check-tools.js';
import { extensions, tool } from '../../harness.js';

t.test('tools that an entry does not have are reported before the start, if it knows its tools', (t) => {
  const shop = [tool('listOrders', () => ''), tool('getOrder', () => '')];
  const sources: Record<string, ToolSource> = {
    shop: { tools: () => shop },
    later: { tools: () => [] },
    slow: { tools: () => Promise.reject(new Error('it has not started')) },
    broken: {
      tools: () => {
        throw new Error('it has not started');
      },
    },
  };
  const tools = ['shop', 'shop/*', 'shop/getOrder', 'shop/listOrdrs', 'shop/pay', 'later/x', 'slow/x', 'broken/x', 'disabled/x'];
  t.strictSame(checkTools({ ops: { tools } } as never, extensions(sources)), [
    { path: ['agents', 'ops', 'tools', 3], message: 'unknown tool "listOrdrs", did you mean "shop/listOrders"?' },
    { path: ['agents', 'ops', 'tools', 4], message: 'unknown tool "pay"; entry "shop" offers listOrders, getOrder' },
  ]);
  t.end();
});
