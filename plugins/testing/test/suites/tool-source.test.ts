import type { Tool, ToolSource } from '@plugboard/kernel';
import t from 'tap';
import { testToolCall } from '../../src/index.js';
import { type SampleCall, toolSourceContract } from '../../src/suites/tool-source.js';
import { casesOf, failing, verdict } from '../failing.js';

const ECHO: Tool = {
  name: 'echo',
  description: 'Returns its argument.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  effect: 'read',
  run: ({ text }) => String(text),
};
const CALL: SampleCall = { tool: 'echo', input: { text: 'a' } };

/** A source of one tool, changed in one respect. */
function source(change: Partial<Tool> = {}): ToolSource {
  return { single: true, tools: () => [{ ...ECHO, ...change }] };
}

const cases = (open: () => ToolSource | Promise<ToolSource>, call = CALL) =>
  casesOf((test) => toolSourceContract(test, { open, calls: [call], timeLimit: 100 }));

const NAMES = 'gives every tool a different name';
const SINGLE = 'offers exactly one tool if it is `single`';
const DESCRIBES = 'describes each tool for the model';
const EFFECT = 'declares the effect of a second call';
const SCHEMA = 'declares the arguments of each tool with a valid JSON Schema of type `object`';
const STABLE = 'returns the same tools in the same order each time';
const ANSWERS = 'answers echo({"text":"a"}) with text or parts';
const UNCHANGED = 'leaves the arguments of echo({"text":"a"}) unchanged';
const TWICE = 'answers two concurrent calls of echo({"text":"a"})';
const ABORTED = 'ends echo({"text":"a"}) soon after the signal is aborted';

t.test('passes sources that answer at once or later, with text or parts', async (t) => {
  t.same(await failing(cases(() => source())), []);
  const slow: ToolSource = {
    single: false,
    tools: async () => [{ ...ECHO, run: async () => ({ content: [{ type: 'text', text: 'a' }] }) }],
  };
  t.same(await failing(cases(async () => slow)), []);
});

t.test('finds each broken promise', async (t) => {
  t.same(await failing(cases(() => ({ single: true, tools: () => [ECHO, { ...ECHO, name: 'b' }] }))), [SINGLE]);
  t.same(await failing(cases(() => ({ single: false, tools: () => [ECHO, ECHO] }))), [NAMES]);
  t.same(await failing(cases(() => ({ single: false, tools: () => [ECHO, { ...ECHO, name: ' ' }] }))), [NAMES]);
  t.same(await failing(cases(() => source({ description: '' }))), [DESCRIBES]);
  t.same(await failing(cases(() => source({ effect: 'none' as 'read' }))), [EFFECT]);
  t.same(await failing(cases(() => source({ inputSchema: { type: 'string' } }))), [SCHEMA, ANSWERS]);
  const misspelled = { type: 'object', properties: { a: { type: 'strnig' } } };
  t.ok((await failing(cases(() => source({ inputSchema: misspelled })))).includes(SCHEMA));
  let count = 0;
  const counting: ToolSource = { single: true, tools: () => [{ ...ECHO, description: `Called ${++count} times.` }] };
  t.same(await failing(cases(() => counting)), [STABLE]);
  t.same(await failing(cases(() => source({ run: (input) => Object.assign(input, { text: 'b' }).text }))), [UNCHANGED]);
  for (const output of [
    undefined,
    { content: 'a' },
    { content: [{ type: 'smell', text: '' }] },
    { content: [], isError: true },
  ]) {
    t.same(await failing(cases(() => source({ run: () => output as unknown as string }))), [ANSWERS, TWICE]);
  }
  let running = 0;
  const alone = async () => {
    if (running++ > 0) throw new Error('busy');
    await Promise.resolve();
    running--;
    return 'a';
  };
  t.same(await failing(cases(() => source({ run: alone }))), [TWICE]);
  const hangsWhenAborted: Tool['run'] = (_, { signal }) =>
    new Promise((resolve) => setTimeout(() => signal.aborted || resolve('a'), 5));
  t.same(await failing(cases(() => source({ run: hangsWhenAborted }))), [ABORTED]);
});

t.test('says which promise is broken, how, and where it is documented', async (t) => {
  t.equal(
    await verdict(
      cases(() => source({ effect: 'none' as 'read' })),
      EFFECT,
    ),
    [
      'A tool source declares the effect of a second call.',
      'Found: the tool "echo" has the unknown effect "none"',
      'Documented at: Tool.effect, in the types of @plugboard/kernel',
    ].join('\n'),
  );
});

t.test('says what was thrown instead of an error', async (t) => {
  const throwing = cases(() =>
    source({
      run: () => {
        throw 'no luck';
      },
    }),
  );
  t.match(await verdict(throwing, ANSWERS), "Found: it threw 'no luck', which is not an Error");
});

t.test('distinguishes a wrong sample from a wrong tool', async (t) => {
  const wrong = cases(() => source(), { tool: 'echo', input: { text: 1 } });
  t.match(
    await verdict(wrong, 'answers echo({"text":1}) with text or parts'),
    "the sample does not match the tool's inputSchema",
  );
  const unknown = cases(() => source(), { tool: 'ehco', input: {} });
  t.match(await verdict(unknown, 'answers ehco({}) with text or parts'), 'there is no tool "ehco"; there are "echo"');
});

t.test('a test call has defaults and collects progress', async (t) => {
  const call = testToolCall({ agent: 'other' });
  call.progress('half', 0.5);
  call.progress('done');
  t.same(call.progressed, [
    { message: 'half', fraction: 0.5 },
    { message: 'done', fraction: undefined },
  ]);
  t.match(call, { id: 'call_1', agent: 'other', principal: { project: 'default' }, headers: {} });
  t.equal(call.signal.aborted, false);
});
