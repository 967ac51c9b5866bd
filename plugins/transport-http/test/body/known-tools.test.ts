import { SHAPE_LIMITS } from '@plugboard/kernel/contracts';
import t from 'tap';
import { measureJson } from '../../src/body/json-limits.js';
import { KnownTools } from '../../src/body/known-tools.js';
import { echo, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const tool = (name: string, fields: object = {}) => ({ name, input_schema: { type: 'object', ...fields } });

function parse(known: KnownTools, body: object) {
  const text = JSON.stringify(body);
  const { tools } = measureJson(text, SHAPE_LIMITS);
  return tools && known.parse(text, tools);
}

t.test('equal lists of tools are one frozen value, whatever is around them', async (t) => {
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

t.test('a limited number and size of lists is kept', async (t) => {
  const known = new KnownTools();
  const of = (name: string, length = 0) => parse(known, { tools: [tool(name, { title: 'x'.repeat(length) })] })?.tools;
  t.not(of('large', 300_000), of('large', 300_000));
  const [oldest, used] = [of('oldest'), of('used')];
  for (let at = 0; at < 31; at++) {
    of(`tool ${at}`);
    t.equal(of('used'), used);
  }
  t.not(of('oldest'), oldest);
  for (let at = 0; at < 10; at++) of(`big ${at}`, 250_000);
  t.not(of('used'), used);
});
