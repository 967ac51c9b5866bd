import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import t from 'tap';
import { KnownToolLists } from '../../../src/engine/tools/known-tool-lists.js';

const schema = (fields: object) => ({ type: 'object', properties: {}, ...fields });
const tool = (name: string, fields: object = {}): ToolDeclaration => ({ name, description: '', inputSchema: schema(fields) });

t.test('gives equal lists one identity', async (t) => {
  const lists = new KnownToolLists();
  const first = lists.of([tool('a', { required: ['x'] }), tool('b')]);
  t.equal(lists.of([tool('a', { required: ['x'] }), tool('b')]), first);
  t.strictSame(first, [tool('a', { required: ['x'] }), tool('b')]);
  t.throws(() => Object.assign(first[0]?.inputSchema as object, { title: 'mine' }), 'one caller cannot change it for another');
});

t.test('returns each list as it was sent', async (t) => {
  const lists = new KnownToolLists();
  const sent = [
    [],
    [tool('a')],
    [tool('a'), tool('b')],
    [tool('b'), tool('a')],
    [tool('a', { required: [] })],
    [tool('a', { required: {} })],
    [tool('a', { required: ['x', 'y'] })],
    [tool('a', { required: ['x'], title: 'y' })],
    [tool('a', { minimum: 1 })],
    [tool('a', { minimum: '1' })],
    [tool('a', { minimum: null })],
    [tool('a', { x: { y: {} }, z: 1 })],
    [tool('a', { x: { y: {}, z: 1 } })],
    [tool('a', { z: 1, x: { y: {} } })],
    [tool('a', JSON.parse('{"__proto__":{}}'))],
    [tool('a', { toString: {} })],
  ];
  for (let round = 0; round < 2; round++) {
    for (const list of sent) t.equal(JSON.stringify(lists.of(list)), JSON.stringify(list));
  }
});

t.test('keeps a limited number and size of lists', async (t) => {
  const lists = new KnownToolLists();
  const large = [tool('large', { title: 'x'.repeat(300_000) })];
  t.equal(lists.of(large), large);
  const oldest = lists.of([tool('oldest')]);
  const used = lists.of([tool('used')]);
  for (let i = 0; i < 31; i++) {
    lists.of([tool(`tool_${i}`)]);
    t.equal(lists.of([tool('used')]), used);
  }
  t.not(lists.of([tool('oldest')]), oldest);
  for (let i = 0; i < 10; i++) lists.of([tool(`big_${i}`, { title: 'x'.repeat(250_000) })]);
  t.not(lists.of([tool('used')]), used);
});
