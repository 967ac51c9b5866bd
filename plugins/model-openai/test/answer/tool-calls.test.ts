import assert from 'node:assert/strict';
import type { ModelEvent } from '@plugboard/kernel';
import { SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { ToolCalls } from '../../src/answer/tool-calls.js';
import { AnswerTooLarge } from '../../src/failure/answer-too-large.js';

/** A fragment as in a delta. */
function part(index: number | undefined, id: string | undefined, name?: string, args?: unknown) {
  return { index, id, function: { name, arguments: args } };
}

const TOOLS = ['f', 'g', 'h', 'get_time', 'get_weather'];

/**
 * The calls assembled from fragments, each as `id name arguments`. Asserts that what was streamed
 * of them is how they begin.
 */
function calls(...fragments: readonly unknown[]): readonly string[] {
  return read(fragments).calls;
}

/** The pieces that are streamed while the fragments arrive, each as `id name piece`. */
function pieces(...fragments: readonly unknown[]): readonly string[] {
  return read(fragments).pieces;
}

function read(fragments: readonly unknown[]): { calls: readonly string[]; pieces: readonly string[] } {
  const toolCalls = new ToolCalls((name) => TOOLS.includes(name), TOOLS);
  const events: ModelEvent[] = [];
  for (const fragment of fragments) toolCalls.add(fragment, events);
  const deltas = events.filter((event) => event.type === 'tool-call-delta');
  const all = toolCalls.all(new SequentialIds(), 'm');
  const streamed = new Map<string, string>();
  for (const { id, name, arguments: piece } of deltas)
    streamed.set(`${id} ${name}`, (streamed.get(`${id} ${name}`) ?? '') + piece);
  for (const [call, begun] of streamed) {
    const found = all.filter(({ id, name }) => `${id} ${name}` === call);
    assert.equal(found.length, 1, `${call} is one call`);
    assert.ok(found[0]?.arguments.startsWith(begun), `${call} begins with ${begun}`);
  }
  return {
    calls: all.map(({ id, name, arguments: args }) => `${id.replace(/0{3,}/, '…')} ${name} ${args}`),
    pieces: deltas.map(({ id, name, arguments: piece }) => `${id} ${name} ${piece}`),
  };
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

t.test('the real arguments are taken once, however a server repeats them', async (t) => {
  const args = '{"city":"Paris","n":2}';
  const joined = (...fragments: readonly unknown[]) =>
    calls(part(0, 'a', 'f', fragments[0]), ...fragments.slice(1).map((fragment) => part(0, undefined, undefined, fragment)));
  for (const fragments of [
    ['{}', args],
    [{}, args],
    ['{}', '{"city":', '"Paris","n":2}'],
    [args, args],
    [args, '', null, args],
    ['{"city":', '"Paris","n":2}', args],
    ['{"city":"Pa', args],
    ['{', args],
    [`{${args}`],
    ['{"ci', '{"city":"Par', args],
    ['{"city":"Paris"}', args],
    [{ city: 'Paris', n: 2 }],
    [null, args],
    ['null', args],
    [JSON.stringify(args)],
    [args, '{}'],
  ])
    t.same(joined(...fragments), [`a f ${args}`], JSON.stringify(fragments));
  for (const none of ['', 'null', '""', '{}', {}, null, undefined]) t.same(joined(none), ['a f {}'], JSON.stringify(none));
  t.same(joined('{"path":', '{"path":1}}'), ['a f {"path":{"path":1}}'], 'nested objects repeat nothing');
  t.same(joined('[1]'), ['a f [1]'], 'other JSON is for the tool to refuse');
  t.same(joined('{"a":', 'oops'), ['a f {"a":oops'], 'and so is invalid JSON');
  t.same(joined('{"a":"}{"}'), ['a f {"a":"}{"}'], 'braces in strings are text');
});

t.test('several complete arguments in one call are several calls', async (t) => {
  const one = calls(part(0, 'a', 'f', '{"q":"A"}'), part(0, undefined, undefined, '{"q":"B"}{"q":"C"}'));
  t.same(one, ['a f {"q":"A"}', 'call_…1 f {"q":"B"}', 'call_…2 f {"q":"C"}']);
});

t.test('names may be repeated, cumulative or in pieces', async (t) => {
  const named = (...names: readonly string[]) =>
    calls(...names.map((name, i) => part(0, i === 0 ? 'a' : undefined, name)), part(0, undefined, undefined, '{"x":1}'));
  t.same(named('get_weather', 'get_weather'), ['a get_weather {"x":1}']);
  t.same(named('get_', 'weather'), ['a get_weather {"x":1}']);
  t.same(named('get', '_', 'weather'), ['a get_weather {"x":1}']);
  t.same(named('get_', 'get_weather'), ['a get_weather {"x":1}']);
  t.same(
    calls(part(undefined, undefined, 'get_'), part(undefined, undefined, 'time'), part(undefined, undefined, undefined, '{}')),
    ['call_…1 get_time {}'],
  );
  t.same(named('f', 'g'), ['a f {}', 'call_…1 g {"x":1}'], 'two declared names are two calls');
  t.same(calls(part(0, 'a', 'get_'), part(0, 'a', 'time', '{}')), ['a get_time {}']);
});

t.test('calls under one index without ids are distinguished by their arguments', async (t) => {
  t.same(calls(part(0, undefined, 'f', '{"x":1}'), part(0, undefined, 'f', '{"x":2}')), [
    'call_…1 f {"x":1}',
    'call_…2 f {"x":2}',
  ]);
  t.same(calls(part(0, undefined, 'f', '{"x":1}'), part(0, undefined, 'g', '{"x":1}')), [
    'call_…1 f {"x":1}',
    'call_…2 g {"x":1}',
  ]);
  t.same(calls(part(0, undefined, 'f', '{"x":1}'), part(0, undefined, 'f', '{"x":1}')), ['call_…1 f {"x":1}'], 'the same again');
  t.same(calls(part(0, undefined, 'f', '{}'), part(0, undefined, 'f', '{"x":1}')), ['call_…1 f {"x":1}'], 'a placeholder');
  t.same(calls(part(0, 'a', 'f', '{"x":'), part(0, 'b', 'f', '1}')), ['a f {"x":1}'], 'a fresh id with the rest');
  t.same(calls(part(undefined, undefined, 'f', '{"x":'), part(undefined, undefined, 'f', '1}')), ['call_…1 f {"x":1}']);
});

t.test('the beginning and the rest of a call may be counted differently', async (t) => {
  t.same(
    calls(
      part(1, 'a', 'f', ''),
      part(0, undefined, undefined, '{"x":1}'),
      part(0, 'b', 'g', ''),
      part(1, undefined, undefined, '{"x":'),
      part(1, undefined, undefined, '2}'),
    ),
    ['a f {"x":1}', 'b g {"x":2}'],
  );
  t.same(calls(part(1, 'a', 'f', ''), part(1, undefined, undefined, '{}')), ['a f {}'], 'the only index is 1');
  t.same(calls(part(0, 'a', 'f', ''), part(1, 'a', 'f', '{"x":1}')), ['a f {"x":1}']);
});

t.test('ids may be numbers, with name and arguments beside them', async (t) => {
  t.same(calls({ id: 7, name: 'f', arguments: { x: 1 } }), ['7 f {"x":1}']);
});

t.test('S-55 arguments are parsed when they are complete, not with each fragment', async (t) => {
  const { parse } = JSON;
  t.teardown(() => {
    JSON.parse = parse;
  });
  let parsed = 0;
  JSON.parse = (text, reviver) => {
    parsed += text.length;
    return parse(text, reviver);
  };
  const words = ['{"text":"', ...Array(5_000).fill('word '), '"}'];
  const length = words.join('').length;
  for (const name of [undefined, 'f']) {
    parsed = 0;
    t.equal(calls(part(0, 'a', 'f'), ...words.map((word) => part(0, undefined, name, word))).length, 1);
    t.ok(parsed <= 4 * length, `${parsed} characters for ${length}`);
    parsed = 0;
    calls(part(0, 'a', 'f', words.join('')), ...Array(5_000).fill(part(0, undefined, name, ' ')));
    t.ok(parsed <= 4 * length + 20_000, `${parsed} characters for ${length}, then blanks`);
  }
  parsed = 0;
  const joined = Array.from({ length: 5_000 }, (_, at) => `{"${at}":1}`).join('');
  t.same(calls(part(0, 'a', 'f', joined)), [`a f ${joined}`], 'too many objects in one call are not taken apart');
  t.ok(parsed <= 4 * joined.length, `${parsed} characters for ${joined.length}`);
});

t.test('S-55 the calls of an answer, and the arguments of a call, are limited', async (t) => {
  const many = Array.from({ length: 257 }, (_, at) => part(at, `c${at}`, 'f', '{}'));
  t.equal(calls(...many.slice(1)).length, 256);
  t.throws(() => calls(...many), AnswerTooLarge);
  t.equal(calls(part(0, 'a', 'f', 'x'.repeat(2 ** 20))).length, 1);
  t.throws(() => calls(part(0, 'a', 'f', 'x'.repeat(2 ** 20)), part(0, undefined, undefined, 'x')), AnswerTooLarge);
});

t.test('C-104 arguments are streamed as they arrive, but the closing brace', async (t) => {
  t.same(
    pieces(
      part(0, 'a', 'f', ''),
      part(0, undefined, undefined, '{"x"'),
      part(0, undefined, undefined, ':1'),
      part(0, undefined, undefined, '}'),
    ),
    ['a f {"x"', 'a f :1'],
  );
  t.same(pieces(part(0, 'a', 'f', '{"x":1}')), [], 'nothing waits to be streamed');
  const nested = ['\n {"x":', '{"y":[1', ',2]}', ',"z":"}"', ' \t', '  }'];
  t.same(pieces(part(0, 'a', 'f'), ...nested.map((text) => part(0, undefined, undefined, text))), [
    'a f {"x":',
    'a f {"y":[1',
    'a f ,2]}',
    'a f ,"z":"}"',
  ]);
});

t.test('C-111 a streamed piece ends with a whole character, and not with white space', async (t) => {
  const halves = ['{"x":"a \ud83d', '\ude00 ', ' b', '"}'];
  t.same(pieces(part(0, 'a', 'f'), ...halves.map((text) => part(0, undefined, undefined, text))), [
    'a f {"x":"a',
    'a f  \u{1f600}',
    'a f   b',
  ]);
});

t.test('parallel calls are streamed in their order, also one without arguments', async (t) => {
  const two = [part(0, 'a', 'f', '{}'), part(1, 'b', 'g', '{"x"'), part(1, undefined, undefined, ':1}')];
  t.same(pieces(...two), ['a f ', 'b g {"x"']);
  const mixed = [
    part(0, 'a', 'f', '{"x"'),
    part(1, 'b', 'g', '{"y"'),
    part(0, undefined, undefined, ':1'),
    part(1, undefined, undefined, ':2'),
  ];
  t.same(pieces(...mixed), ['a f {"x"', 'b g {"y"', 'a f :1', 'b g :2']);
});

t.test('calls that leave the protocol are not streamed, and neither are those after them', async (t) => {
  const next = [part(1, 'b', 'g', '{"x"'), part(1, undefined, undefined, ':1}')];
  for (const odd of [
    part(undefined, 'a', 'f', '{"x"'),
    part(0, undefined, 'f', '{"x"'),
    part(0, 'a', 'unknown', '{"x"'),
    part(0, 'b', 'f', '{"x"'),
  ]) {
    t.same(
      pieces(odd, ...next).filter((piece) => !piece.startsWith('b f')),
      [],
      JSON.stringify(odd),
    );
  }
  t.same(pieces(part(0, 'a', 'f', '"{'), part(0, undefined, undefined, '}"')), [], 'JSON in a string');
  t.same(pieces(part(0, 'a', 'f', '{"x"'), part(1, undefined, undefined, ':1')), ['a f {"x"'], 'another index for the rest');
});

t.test('arguments that the server repeats are streamed as far as they are the same', async (t) => {
  const rest = (text: string) => part(0, undefined, undefined, text);
  t.same(pieces(part(0, 'a', 'f', '{"x"'), rest('{"x":1'), rest('{"x":1}')), ['a f {"x"'], 'the arguments so far');
  t.same(pieces(part(0, 'a', 'f', '{'), rest('}'), rest('{"x":1}')), ['a f {'], 'an empty object first');
  t.same(calls(part(0, 'a', 'f', '{"x":'), rest('1'), rest('{"x":1}')), ['a f {"x":1}'], 'everything again at the end');
});

t.test('S-55 white space that never ends is read in linear time', async (t) => {
  const blanks = Array.from({ length: 100_000 }, () => part(0, undefined, undefined, ' '.repeat(8)));
  const begun = performance.now();
  t.equal(pieces(part(0, 'a', 'f', '{"x":"'), ...blanks, part(0, undefined, undefined, 'y')).length, 2);
  t.ok(performance.now() - begun < 30_000);
});
