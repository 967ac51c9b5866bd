import t from 'tap';
import type { Tool, ToolSource } from '../../src/index.js';
import { type SampleCall, testToolCall, toolSourceContract } from '../../src/testing/index.js';
import { failing, verdict } from './failing.js';

const ECHO: Tool = {
  name: 'echo',
  description: 'Says it again.',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
  effect: 'read',
  run: ({ text }) => String(text),
};
const CALL: SampleCall = { tool: 'echo', input: { text: 'a' } };

/** A source of one tool, with something about it changed. */
function source(change: Partial<Tool> = {}): ToolSource {
  return { single: true, tools: () => [{ ...ECHO, ...change }] };
}

const cases = (open: () => ToolSource | Promise<ToolSource>, call = CALL) => toolSourceContract(open, [call]);

t.test('a source that keeps the contract passes, whether it answers at once or later, with text or parts', async (t) => {
  t.same(await failing(cases(() => source())), []);
  const slow: ToolSource = {
    single: false,
    tools: async () => [{ ...ECHO, run: async () => ({ content: [{ type: 'text', text: 'a' }] }) }],
  };
  t.same(await failing(cases(async () => slow)), []);
});

t.test('each way to break it is found by the case that speaks of it', async (t) => {
  const named = 'offers tools with names of their own, and exactly one where it is single by its nature';
  const told = 'tells the model what each tool does, and the kernel what calling it twice would do';
  const schema = 'describes the arguments of each tool by a schema of an object that compiles';
  const stable = 'offers the same tools in the same order when it is asked again, so that the prompt of a model stays the same';
  const answers = 'echo({"text":"a"}) answers with text or parts, and leaves its arguments as they are';
  const together = 'echo({"text":"a"}) may run twice at the same time';

  t.same(await failing(cases(() => ({ single: true, tools: () => [ECHO, { ...ECHO, name: 'b' }] }))), [named]);
  t.same(await failing(cases(() => ({ single: false, tools: () => [ECHO, ECHO] }))), [named]);
  t.same(await failing(cases(() => ({ single: false, tools: () => [ECHO, { ...ECHO, name: ' ' }] }))), [named]);
  t.same(await failing(cases(() => source({ description: '' }))), [told]);
  t.same(await failing(cases(() => source({ effect: 'none' as 'read' }))), [told]);
  t.same(await failing(cases(() => source({ inputSchema: { type: 'string' } }))), [schema, answers]);
  t.match(await failing(cases(() => source({ inputSchema: { type: 'object', properties: { a: { type: 'strnig' } } } }))), [
    schema,
  ]);
  let count = 0;
  t.same(await failing(cases(() => ({ single: true, tools: () => [{ ...ECHO, description: `Asked ${++count} times.` }] }))), [
    stable,
  ]);
  t.same(await failing(cases(() => source({ run: (input) => Object.assign(input, { text: 'b' }).text }))), [answers, together]);
  t.same(await failing(cases(() => source({ run: () => undefined as unknown as string }))), [answers, together]);
  t.same(await failing(cases(() => source({ run: () => ({ content: 'a' as unknown as [] }) }))), [answers, together]);
  t.same(await failing(cases(() => source({ run: () => ({ content: [{ type: 'smell' as 'text', text: '' }] }) }))), [
    answers,
    together,
  ]);
  t.same(await failing(cases(() => source({ run: () => ({ content: [], isError: true }) }))), [answers, together]);
  let running = 0;
  const alone = async () => {
    if (running++ > 0) throw new Error('busy');
    await Promise.resolve();
    running--;
    return 'a';
  };
  t.same(await failing(cases(() => source({ run: alone }))), [together]);
});

t.test('a sample that cannot work is told from a tool that does not', async (t) => {
  const name = 'echo({"text":1}) answers with text or parts, and leaves its arguments as they are';
  t.match(
    await verdict(
      cases(() => source(), { tool: 'echo', input: { text: 1 } }),
      name,
    ),
    "the sample arguments do not fit the tool's schema",
  );
  const missing = 'ehco({}) answers with text or parts, and leaves its arguments as they are';
  t.match(
    await verdict(
      cases(() => source(), { tool: 'ehco', input: {} }),
      missing,
    ),
    'there is no tool "ehco"; there are "echo"',
  );
});

t.test('a test call has what a call has, and keeps what the tool tells of its progress', async (t) => {
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
