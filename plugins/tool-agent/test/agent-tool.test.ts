import { AgentRuntimes, definePlugin, Interceptors, ToolSources, type Turn } from '@plugboard/kernel';
import { NO_USAGE } from '@plugboard/kernel/contracts';
import { checkOptions, pluginContract, ScriptedRuntime, testContext, testToolCall, toolSourceContract } from '@plugboard/testing';
import t from 'tap';
import { answerOf } from '../src/answer.js';
import plugin from '../src/index.js';
import { asking, calls, collect, family, resultsOf, toolNames } from './family.js';

const OPTIONS = { agent: 'helper', description: 'Helps.' };
const check = { entries: () => ['helper'] };

function source(config: object = {}) {
  const context = testContext(plugin, { config: { ...OPTIONS, ...config }, entry: 'tools.helper', check });
  const runtime = new ScriptedRuntime({ agents: ['helper'] });
  context.provide(AgentRuntimes, runtime);
  return { runtime, tools: context.contributed(ToolSources, 'helper') };
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), config: OPTIONS, check });
});

t.test('fulfils the tool source contract', async (t) => {
  toolSourceContract(t.test, { open: () => source().tools, calls: [{ tool: 'helper', input: { input: 'Hi' } }] });
});

t.test('AG-3 refuses a depth of 0, and an agent that the file does not have', async (t) => {
  t.match(checkOptions(plugin, { ...OPTIONS, depth: 0 }, check).faults, [/depth/]);
  t.match(checkOptions(plugin, { ...OPTIONS, maxChildren: 0 }, check).faults, [/maxChildren/]);
  t.match(checkOptions(plugin, { ...OPTIONS, agent: 'helpr' }, check).faults, [
    'agent: unknown agent "helpr", did you mean "helper"?',
  ]);
});

t.test('the child has its own prompt, tools and parameters, and the caller, user and metadata of the root', async (t) => {
  const turns: Turn[] = [];
  const recorder = definePlugin({
    name: 'recorder',
    apiVersion: 1,
    summary: 'Collects turns',
    configSchema: { type: 'object' },
    register(ctx) {
      ctx.contribute(Interceptors, (turn, next) => {
        turns.push(turn);
        return next(turn);
      });
    },
  });
  const { asked, run } = await family(t, {
    agents: {
      root: { tools: ['helper'], system: 'Be the root.', params: { temperature: 0.1 } },
      child: { system: 'Be the child.', tools: ['clock'], params: { temperature: 0.9 } },
    },
    tools: { helper: asking('child'), clock: {} },
    plays: {
      root: (_, nth) => (nth === 1 ? calls(['helper', 'What is it?']) : { text: 'Done.' }),
      child: () => ({ text: 'It is this.' }),
    },
    file: { plugins: { seen: { use: recorder } } },
  });
  const parameters = { type: 'object', properties: {} };
  const events = await collect(
    run('root', {
      user: 'ada',
      transport: 'test',
      params: { top_p: 0.5 },
      clientTools: [{ name: 'mine', description: 'Of the caller', inputSchema: parameters }],
      metadata: { order: '7' },
    }),
  );
  t.strictSame(resultsOf(events), [{ content: 'It is this.', isError: false }]);
  const [child] = asked('child');
  t.match(child, { temperature: 0.9, tools: [{ function: { name: 'clock' } }] });
  t.strictSame(toolNames(child), ['clock'], 'no tools of the caller');
  t.equal(child?.top_p, undefined, 'no parameters of the caller');
  t.strictSame(child?.messages, [
    { role: 'system', content: 'Be the child.' },
    { role: 'user', content: 'What is it?' },
  ]);
  t.match(turns, [
    { agent: 'root', user: 'ada', transport: 'test', metadata: { order: '7' }, requestId: 'req_1', incremental: true },
    { agent: 'child', user: 'ada', transport: 'test', metadata: { order: '7' }, requestId: 'req_1', incremental: true },
  ]);
  t.equal(turns[1]?.principal, turns[0]?.principal);
  t.not(turns[1]?.id, turns[0]?.id);
  t.match(asked('root')[0]?.tools, [
    { function: { name: 'helper', description: 'Asks child.' } },
    { function: { name: 'mine' } },
  ]);
});

t.test('AG-8 a turn that a limit or a failure ended returns its texts and why', async (t) => {
  const of = (...events: readonly object[]) =>
    answerOf(
      'helper',
      (async function* () {
        yield [{ type: 'started', turnId: 't', agent: 'helper' }, { type: 'step', step: 1, connection: 'c' }, ...events] as never;
      })(),
    );
  const text = { type: 'text', text: 'First.' };
  const finished = { type: 'finished', reason: 'length', usage: NO_USAGE };
  const failed = { type: 'failed', failure: { code: 'model_failed', message: 'The model broke.', toolsRan: false } };
  const error = (text: string) => ({ content: [{ type: 'text', text }], isError: true });
  const more = [
    { type: 'step', step: 2, connection: 'c' },
    { type: 'text', text: 'Second.' },
  ];
  t.equal(await of(text, ...more, { ...finished, limit: 'max_steps' }), 'First.\nSecond.\n[partial: max_steps]');
  t.equal(await of(text, finished), 'First.\n[partial: length]');
  t.strictSame(await of(finished), error('The agent "helper" had no answer yet.\n[partial: length]'));
  t.strictSame(await of(text, failed), error('First.\n[partial: model_failed]'));
  t.strictSame(await of(failed), error('The model broke.\n[partial: model_failed]'));
  t.strictSame(await of(text), 'First.\n[partial: abandoned]', 'an interceptor swallowed the end');
  t.strictSame(
    await of({ type: 'text', text: 'Approve?', isNotice: true }, { ...finished, reason: 'stop' }),
    error('The agent "helper" ended without an answer.'),
  );
});

t.test('AG-12 an agent without a final text is an error, whatever it said before', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['clock'] } },
    tools: { helper: asking('child'), clock: {} },
    plays: {
      root: (_, nth) => (nth === 1 ? calls(['helper', 'x']) : { text: 'Done.' }),
      child: (_, nth) => (nth === 1 ? { text: 'Let me look.', toolCalls: [{ name: 'clock', arguments: {} }] } : { text: '' }),
    },
  });
  t.strictSame(resultsOf(await collect(run('root'))), [{ content: 'The agent "child" ended without an answer.', isError: true }]);
});

t.test('AG-10 the token of the caller decides: an agent that it may not use is not asked', async (t) => {
  const { asked, run, runtime } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: {} },
    tools: { helper: asking('child') },
    plays: { root: (_, nth) => (nth === 1 ? calls(['helper', 'x']) : { text: 'Done.' }) },
  });
  const principal = { project: 'default', tokenId: 't1', agents: ['root'], scopes: ['chat'] } as const;
  const events = await collect(run('root', { principal }));
  t.strictSame(resultsOf(events), [{ content: 'The caller may not use the agent "child".', isError: true }]);
  t.equal(asked('child').length, 0);
  t.match(runtime.resolve('child', principal), { kind: 'forbidden' });
});

t.test('a call outside of a turn is refused', async (t) => {
  const { runtime, run } = await family(t, { agents: { root: {} }, tools: {}, plays: {} });
  const [failed] = await collect(run('root', { parent: testToolCall() }));
  t.match(failed, { type: 'failed', failure: { code: 'crashed', message: /cannot start a turn/ } });
  t.ok(await runtime.ready());
});
