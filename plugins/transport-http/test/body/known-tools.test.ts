import assert from 'node:assert/strict';
import { SHAPE_LIMITS } from '@plugboard/kernel/contracts';
import fc from 'fast-check';
import t from 'tap';
import { measureJson } from '../../src/body/json-limits.js';
import { KnownTools } from '../../src/body/known-tools.js';
import { echo, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

/** A body, and what is inserted where: a share of its length. */
type Spoiled = [body: string, inserted: [where: number, piece: string][]];

const tool = (name: string, fields: object = {}) => ({ name, input_schema: { type: 'object', ...fields } });

function parse(known: KnownTools, body: object) {
  const text = JSON.stringify(body);
  const { tools } = measureJson(text, SHAPE_LIMITS);
  return tools && known.parse(text, tools);
}

t.test('equal lists of tools in different bodies are one frozen value', async (t) => {
  const known = new KnownTools();
  const first = parse(known, { model: 'm', tools: [tool('a', { required: ['x'] }), tool('b')] });
  t.strictSame(first, { model: 'm', tools: [tool('a', { required: ['x'] }), tool('b')] });
  const next = parse(known, { tools: [tool('a', { required: ['x'] }), tool('b')], messages: [{ content: '"tools":[' }] });
  t.strictSame(Object.keys(next ?? {}), ['tools', 'messages'], 'in the order of the text');
  t.equal(next?.tools, first?.tools);
  const [made] = (first?.tools ?? []) as { readonly input_schema: object }[];
  t.ok(Object.isFrozen(made?.input_schema));
});

t.test('each body is parsed as it was sent, also when its tools are known', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const tools = JSON.stringify([tool('a'), tool('b', { title: '"tools":[]' })]);
  const texts = [
    `{"tools":${tools}}`,
    `{ "a":1, "tools" : ${tools} , "b":"\\"tools\\":" }`,
    `{"tools":${tools},"tools":${tools}}`,
    `{"tools":${tools},"tools":[]}`,
    `{"tools":[],"tools":${tools}}`,
    `{"tools":${tools},"tools":null,"a":[]}`,
    `{"tools":${tools},"t\\u006fols":[1]}`,
    `{"t\\u006fols":[1],"tools":${tools}}`,
    `{"a":{"tools":${tools}}}`,
    `{"a":{"tools":${tools}},"tools":${tools},"b":{"tools":[]}}`,
    `{"tools":${JSON.stringify({ tools: JSON.parse(tools) })}}`,
    `{"tools":[[${tools}],${tools}]}`,
    '{"tools":[]}',
    '{"tools":{}}',
    '{"tools":"[]","a":[]}',
    '{"tools":[{"__proto__":{"a":1}}]}',
    '{"tools":[1],"__proto__":{"a":1}}',
  ];
  for (let round = 0; round < 2; round++) {
    for (const text of texts) {
      const expected = JSON.stringify(JSON.parse(text, (key, value) => (key === '__proto__' ? undefined : value)));
      t.equal(await (await postJson(`${url}/v1/echo`, text)).text(), expected, text.slice(0, 60));
    }
    for (const text of [
      `{"tools":${tools}`,
      `{"tools":${tools}]}`,
      `{"tools":${tools},}`,
      `{"tools":${tools}0}`,
      `{"tools":0${tools}}`,
    ])
      t.equal((await postJson(`${url}/v1/echo`, text)).status, 400, text.slice(-10));
  }
});

t.test('no text is read otherwise because its tools are known', async (t) => {
  const known = new KnownTools();
  const lists = ['[]', '{}', '[1]', JSON.stringify([tool('a')])];
  for (const list of lists) parse(known, { tools: JSON.parse(list) });
  const bodies = lists.flatMap((list) => [`{"tools":${list}}`, `{"a":1,"tools": ${list} ,"b":[]}`]);
  const pieces = [...lists, '"tools":', '"a":', '"', ',', '[', ']', '{', '}', '0', '1', '-', '.5', 'e5', 'null', '\\', ' '];
  const spoiled = fc.tuple(
    fc.constantFrom(...bodies),
    fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(...pieces)), { maxLength: 3 }),
  );
  const read = (parsed: () => unknown) => {
    try {
      return JSON.stringify(parsed());
    } catch {
      return 'invalid';
    }
  };
  let [valid, invalid] = [0, 0];
  fc.assert(
    fc.property(spoiled, ([body, inserted]) => {
      const text = inserted.reduce((sum, [where, piece]) => {
        const at = Math.floor(where * (sum.length + 1));
        return sum.slice(0, at) + piece + sum.slice(at);
      }, body);
      const { tools, isPlain } = measureJson(text, SHAPE_LIMITS);
      if (tools === undefined || !isPlain) return;
      const expected = read(() => JSON.parse(text));
      if (expected === 'invalid') invalid++;
      else valid++;
      assert.equal(
        read(() => known.parse(text, tools)),
        expected,
        text,
      );
    }),
    { numRuns: 2_000, examples: ['1[]', '-[]', '[].5', '[]e5'].map((value): [Spoiled] => [[`{"tools":${value}}`, []]]) },
  );
  t.ok(valid > 100 && invalid > 100);
});

t.test('a limited number and size of lists is kept', async (t) => {
  const known = new KnownTools();
  const of = (name: string, length = 0) => parse(known, { tools: [tool(name, { title: 'x'.repeat(length) })] })?.tools;
  t.not(of('large', 600_000), of('large', 600_000));
  const many = () => parse(known, { tools: Array.from({ length: 20_000 }, () => 0) })?.tools;
  t.not(many(), many(), 'its values count');
  const [oldest, used] = [of('oldest'), of('used')];
  for (let at = 0; at < 31; at++) {
    of(`tool ${at}`);
    t.equal(of('used'), used);
  }
  t.not(of('oldest'), oldest);
  for (let at = 0; at < 10; at++) of(`big ${at}`, 450_000);
  t.not(of('used'), used);
});
