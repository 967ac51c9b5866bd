import type { Contribution, Extensions, Tool, ToolSource } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { Toolboxes } from '../../../src/engine/tools/toolbox.js';
import { answerWith, collect, request, ScriptedModel, startRuntime, tool } from '../../harness.js';

const ECHO: Tool = { name: 'echo', description: 'Echoes.', inputSchema: { type: 'object' }, run: () => 'x' };

/** The tools of agents, where the `tools()` of the entry `a` returns this. */
function toolboxesWith(listed: unknown): Toolboxes {
  const source: ToolSource = {
    tools: typeof listed === 'function' ? (listed as ToolSource['tools']) : () => listed as readonly Tool[],
  };
  const all: readonly Contribution<ToolSource>[] = [{ name: 'a', value: source, entry: 'tools.a', shared: {} }];
  const sources = { all: () => all } as Extensions<ToolSource>;
  return new Toolboxes(sources, new CapturedLog().logger(new ManualClock()));
}

/** The problems of an agent that uses that entry. */
const problemsWith = (listed: unknown) => toolboxesWith(listed).problems(['a'], new AbortController().signal);

t.test('a malformed list of tools is reported with its entry and the missing member', async (t) => {
  const mistakes: readonly (readonly [unknown, string])[] = [
    [null, 'tools() did not return an array'],
    [[undefined], 'tools() returned a tool without a name'],
    [[{ ...ECHO, name: undefined }], 'tools() returned a tool without a name'],
    [[{ ...ECHO, description: undefined }], 'the tool "echo" has no description'],
    [[{ ...ECHO, name: '' }], 'tools() returned a tool without a name'],
    [[{ ...ECHO, inputSchema: undefined }], 'the tool "echo" has no inputSchema'],
    [[{ ...ECHO, inputSchema: { type: 'string' } }], 'the inputSchema of the tool "echo" must have the type "object"'],
    [[ECHO, { ...ECHO, name: 'other', run: undefined }], 'the tool "other" has no run()'],
  ];
  for (const [listed, mistake] of mistakes)
    t.same(await problemsWith(listed), [{ path: [0], message: `entry "a": ${mistake}; its plugin must be corrected` }]);
  t.same(await problemsWith([ECHO]), []);
});

t.test('a source that fails when the server starts is reported with its entry', async (t) => {
  const fails = () => Promise.reject(new Error('no connection'));
  t.same(await problemsWith(fails), [
    { path: [0], message: 'entry "a": tools() failed: no connection; its plugin must be corrected' },
  ]);
});

t.test('requests have the tools by name, then those of the caller by name, in whatever order they come (AI-10)', async (t) => {
  const model = new ScriptedModel(() => answerWith('x'));
  const source = (...names: readonly string[]): ToolSource => ({ tools: () => names.map((name) => tool(name, () => '')) });
  let isReversed = false;
  const { runtime, target } = await startRuntime({
    agents: { x: { model: 'fast', tools: ['s', 'b'], clientTools: 'passthrough' } },
    models: { fast: model },
    tools: { s: { tools: () => source(...(isReversed ? ['d', 'c'] : ['c', 'd'])).tools(AbortSignal.any([])) }, b: source('z') },
  });
  for (const names of [['n', 'm'], ['m', 'n'], []]) {
    const clientTools = names.map((name) => ({ name, description: '', inputSchema: { type: 'object' } }) as const);
    await collect(runtime.run(request(target('x'), { clientTools })));
    isReversed = !isReversed;
  }
  t.same(
    model.asked.map(({ tools }) => tools.map(({ name }) => name).join()),
    ['b__z,s__c,s__d,m,n', 'b__z,s__c,s__d,m,n', 'b__z,s__c,s__d'],
  );
});

/** A running agent with the tool `a`, whose source then returns something else. */
async function changing() {
  let list: () => unknown = () => [tool('a', () => '')];
  const model = new ScriptedModel(() => answerWith('x'));
  const { runtime, target, lines } = await startRuntime({
    agents: { x: { model: 'fast', tools: ['e'] } },
    models: { fast: model },
    tools: { e: { tools: () => list() as readonly Tool[] } },
  });
  return {
    /** Runs a turn with this list. */
    async turn(tools: () => unknown) {
      list = tools;
      const events = await collect(runtime.run(request(target('x'))));
      return { end: events.at(-1)?.type, tools: model.asked.at(-1)?.tools };
    },
    warnings: () => lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg),
  };
}

t.test('a malformed tool that appears later is skipped and logged once, and the turn goes on', async (t) => {
  const { turn, warnings } = await changing();
  const circular: Record<string, unknown> = {};
  circular.default = { circular };
  const good = tool('good', () => '');
  const bad = () => [
    null,
    { ...good, description: 7 },
    { ...good, name: 'typed', inputSchema: { type: 'array' } },
    tool('endless', () => '', { x: circular }),
    { ...good, inputSchema: {} },
  ];
  for (const _ of [1, 2]) {
    const { end, tools } = await turn(bad);
    t.equal(end, 'finished');
    t.same(
      tools,
      [{ name: 'e__good', description: good.description, inputSchema: { type: 'object' } }],
      'its schema is completed',
    );
  }
  t.match(warnings(), [
    'entry "e": tools() returned a tool without a name and was skipped; its plugin must be corrected',
    'entry "e": the tool "good" has no description and was skipped; its plugin must be corrected',
    'entry "e": the inputSchema of the tool "typed" must have the type "object" and was skipped; its plugin must be corrected',
    /^tool e\/endless has an invalid input schema and was skipped: schema is invalid: Converting circular structure to JSON/,
  ]);
  t.equal(warnings().length, 4);
});

t.test('S-57 a tool whose pattern has look-around is offered, with one warning', async (t) => {
  const { turn, warnings } = await changing();
  const properties = { name: { type: 'string', pattern: '^(?!tmp).*$' } };
  for (const _ of [1, 2]) {
    const { tools } = await turn(() => [tool('look', () => '', properties)]);
    t.match(tools, [{ name: 'e__look', inputSchema: { properties } }], 'the model sees the pattern');
  }
  t.match(warnings(), [/^tool e\/look: arguments are not checked against the pattern \^\(\?!tmp\)\.\*\$: look-around/]);
  t.equal(warnings().length, 1);
});

t.test('a source that fails later keeps its tools, and each time that it begins to fail is logged', async (t) => {
  const { turn, warnings } = await changing();
  const fails = () => {
    throw new Error('no connection');
  };
  for (const list of [fails, fails, () => 'no list', () => [tool('b', () => '')], fails])
    t.equal((await turn(list)).end, 'finished');
  t.same(
    (await turn(fails)).tools?.map(({ name }) => name),
    ['e__b'],
  );
  const warning = 'the tools of an entry cannot be listed; it keeps the tools it had';
  t.same(warnings(), [warning, warning]);
});

t.test('a source may return a new list in every turn: an agent keeps its tools while they are the same', async (t) => {
  const { turn } = await changing();
  const [a, b] = [tool('a', () => ''), tool('b', () => '')];
  const { tools } = await turn(() => [a]);
  t.equal((await turn(() => [a])).tools, tools);
  t.match((await turn(() => [a, b])).tools, [{ name: 'e__a' }, { name: 'e__b' }]);
  t.match((await turn(() => [b])).tools, [{ name: 'e__b' }]);
});

t.test('S-75 others have their turn while the schemas of many tools are compiled', async (t) => {
  const one = { type: 'object', properties: { next: { $ref: '#/$defs/one' } } } as const;
  const tools = Array.from({ length: 200 }, (_, at) => {
    const inputSchema = { type: 'object', properties: { [`field${at}`]: { $ref: '#/$defs/one' } }, $defs: { one } };
    return { ...ECHO, name: `tool${at}`, inputSchema };
  });
  let turns = 0;
  let isBuilt = false;
  const count = () => {
    turns++;
    if (!isBuilt) setImmediate(count);
  };
  setImmediate(count);
  const toolbox = await toolboxesWith(tools).of(['a'], new AbortController().signal);
  isBuilt = true;
  t.equal(toolbox.tools.size, 200);
  t.ok(turns >= 50, `${turns} turns of the event loop`);
});
