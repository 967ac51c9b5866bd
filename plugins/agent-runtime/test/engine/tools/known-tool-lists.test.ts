import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import t from 'tap';
import { KnownToolLists } from '../../../src/engine/tools/known-tool-lists.js';

const [schema, other] = [Object.freeze({ type: 'object' }), Object.freeze({ type: 'object' })];
const tool = (name: string, fields: Partial<ToolDeclaration> = {}): ToolDeclaration => ({
  name,
  description: '',
  inputSchema: schema,
  ...fields,
});

t.test('gives equal lists with the same schemas one identity', async (t) => {
  const lists = new KnownToolLists();
  const own = [tool('agent', { inputSchema: {} })];
  const first = lists.of(own, [tool('a'), tool('b', { strict: true })]);
  t.equal(lists.of([...own], [tool('a'), tool('b', { strict: true })]), first);
  t.strictSame(first, [...own, tool('a'), tool('b', { strict: true })]);
});

t.test('returns each list as it was sent', async (t) => {
  const lists = new KnownToolLists();
  const own = [tool('agent')];
  const sent = [
    [tool('a')],
    [tool('a'), tool('b')],
    [tool('b'), tool('a')],
    [tool('a', { description: 'A' })],
    [tool('a', { strict: true })],
    [tool('a', { strict: false })],
    [tool('a'), tool('b', { inputSchema: other })],
  ];
  for (const list of [...sent, ...sent]) {
    t.strictSame(lists.of([], list), list);
    t.strictSame(lists.of(own, list), [...own, ...list]);
    t.strictSame(lists.of([tool('agent', { description: 'changed' })], list)[0]?.description, 'changed');
  }
  t.strictSame(lists.of(own, []), own);
});

t.test('a schema that may change is not recognized', async (t) => {
  const lists = new KnownToolLists();
  const list = [tool('a'), tool('b', { inputSchema: {} })];
  t.not(lists.of([], list), lists.of([], list));
});
