import { SequentialIds } from '@plugboard/kernel/testing';
import t from 'tap';
import { ToolCalls } from '../src/answer/tool-calls.js';

/** A fragment as in a delta. */
function part(index: number | undefined, id: string | undefined, name?: string, args?: unknown) {
  return { index, id, function: { name, arguments: args } };
}

/** The calls assembled from fragments, each as `id name arguments`. */
function calls(...fragments: readonly unknown[]): readonly string[] {
  const toolCalls = new ToolCalls();
  for (const fragment of fragments) toolCalls.add(fragment);
  return toolCalls.all(new SequentialIds()).map(({ id, name, arguments: args }) => `${id.replace(/0{3,}/, '…')} ${name} ${args}`);
}

t.test('assigns fragments to calls by index, in any order', async (t) => {
  t.same(
    calls(
      part(0, 'a', 'f', ''),
      part(1, 'b', 'g', ''),
      part(0, undefined, undefined, '{"x"'),
      part(1, undefined, undefined, '{}'),
      part(0, undefined, undefined, ':1}'),
    ),
    ['a f {"x":1}', 'b g {}'],
  );
});

t.test('id and name may be repeated in every fragment', async (t) => {
  t.same(calls(part(0, 'a', 'f', '{'), part(0, 'a', 'f', '}')), ['a f {}']);
  t.same(calls(part(undefined, 'a', 'f', '{'), part(undefined, 'a', 'f', '}')), ['a f {}']);
  t.same(calls(part(0, undefined, 'f', '{'), part(0, undefined, 'f', '}')), ['call_…1 f {}']);
});

t.test('without an index, a name begins a call and a fragment without one continues the last', async (t) => {
  t.same(calls(part(undefined, 'a', 'f', '{'), part(undefined, undefined, undefined, '}'), part(undefined, 'b', 'g', '{}')), [
    'a f {}',
    'b g {}',
  ]);
  t.same(calls(part(undefined, undefined, 'f', {}), part(undefined, undefined, 'g', {})), ['call_…1 f {}', 'call_…2 g {}']);
});

t.test('a new id begins a call even before its name arrives', async (t) => {
  t.same(calls(part(undefined, 'a', 'f', '{}'), part(undefined, 'b', undefined, '{'), part(undefined, 'b', 'g', '}')), [
    'a f {}',
    'b g {}',
  ]);
});

t.test('calls under one index are distinguished by their ids', async (t) => {
  t.same(calls(part(0, 'a', 'f', '{}'), part(0, 'b', 'f', '{"x":2}')), ['a f {}', 'b f {"x":2}']);
  t.same(calls(part(0, 'a', 'f', '{'), part(0, 'b', 'g', '{'), part(0, 'b', undefined, '}'), part(0, 'a', undefined, '}')), [
    'a f {}',
    'b g {}',
  ]);
});

t.test('the rest of a call may arrive under another index', async (t) => {
  t.same(calls(part(0, 'a', 'f', '{}'), part(0, 'b', 'g', '{'), part(1, undefined, undefined, '}')), ['a f {}', 'b g {}']);
});

t.test('an id that changes with every fragment begins no call', async (t) => {
  t.same(calls(part(0, 'a', 'f', '{'), part(0, 'b', undefined, '}')), ['a f {}']);
});

t.test('a duplicate or missing id is replaced', async (t) => {
  t.same(calls(part(0, 'a', 'f', '{}'), part(1, 'a', 'g', '{}'), part(2, '', 'h', '{}')), [
    'a f {}',
    'call_…1 g {}',
    'call_…2 h {}',
  ]);
  t.same(calls(part(0, '', 'f', '{'), part(0, 'a', undefined, '}')), ['a f {}'], 'an id may arrive late');
});

t.test('arguments may be an object, or missing', async (t) => {
  t.same(calls(part(0, 'a', 'f', { x: [1] })), ['a f {"x":[1]}']);
  t.same(calls(part(0, 'a', 'f', null), part(1, 'b', 'g', ' '), { index: 2, id: 'c' }), ['a f {}', 'b g {}', 'c  {}']);
});

t.test('ignores items that are not fragments', async (t) => {
  t.same(calls(null, 'x', []), []);
});
