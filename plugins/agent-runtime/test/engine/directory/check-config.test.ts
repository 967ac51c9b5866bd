import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CheckContext, ConfigFault } from '@plugboard/kernel';
import { checkOptions } from '@plugboard/testing';
import t from 'tap';
import { checkConfig } from '../../../src/engine/directory/check-config.js';
import definition from '../../../src/index.js';
import { answerWith, collect, request, ScriptedModel, singleTool, startRuntime, tool } from '../../harness.js';

function problems(
  options: object,
  sections: Partial<Record<string, string[]>> = {},
  withdrawn: string[] = [],
  folder = '/',
): string[] {
  const { config, faults } = checkOptions({ ...definition, check: undefined }, options);
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const context = {
    entries: (section: string) => sections[section] ?? [],
    disabled: () => withdrawn,
    resolvePath: (path: string) => join(folder, path),
    readFile: (path: string) => readFileSync(join(folder, path), 'utf8'),
    literal: () => undefined,
  } satisfies CheckContext;
  return checkConfig(config, context).map(({ path, message }) => `${path.join('.')}: ${message}`);
}

t.test('unknown references are reported with a suggestion', async (t) => {
  const sections = { models: ['fast'], tools: ['clock', 'files'] };
  t.strictSame(problems({ agents: { a: { model: 'fats', tools: ['clock', 'fiels/*'] } } }, sections), [
    'agents.a.model: unknown model "fats", did you mean "fast"?',
    'agents.a.tools.1: unknown tool "fiels", did you mean "files"?',
  ]);
  t.strictSame(problems({ agents: { a: { model: ['fast', 'zzzzzzzz'] } } }, sections), [
    'agents.a.model.1: unknown model "zzzzzzzz"; models has "fast"',
  ]);
  t.strictSame(problems({ agents: { a: { model: 'x' } } }), [
    'agents.a.model: unknown model "x": there are no entries under models',
  ]);
  t.strictSame(problems({ defaultAgent: 'b', agents: { a: { model: 'fast', project: 'acme' } } }, sections), [
    'agents.a.project: unknown project "acme"; projects has "default"',
    'defaultAgent: unknown agent "b"; agents has "a"',
  ]);
});

t.test('a sampling parameter outside params is suggested with its place', async (t) => {
  const { faults } = checkOptions(definition, { agents: { a: { model: 'fast', temprature: 0.2, seed: 1, tools: 'clock' } } });
  t.strictSame(faults, [
    'agents.a.temprature: unknown option, did you mean params: { temperature: … }?',
    'agents.a.seed: unknown option, did you mean params: { seed: … }?',
    'agents.a.tools: must be a list, such as [clock], not "clock"',
  ]);
});

t.test('a default agent must belong to its project, and an agent and a model must have different names', async (t) => {
  const agents = { a: { model: 'fast', project: 'acme' } };
  t.strictSame(problems({ agents, projects: { acme: {} }, defaultAgent: 'a' }, { models: ['fast'] }), [
    'defaultAgent: agent "a" belongs to project "acme", and a default agent must belong to its own project',
  ]);
  t.strictSame(problems({ agents, projects: { acme: { defaultAgent: 'a' } } }, { models: ['fast'] }), []);
  t.strictSame(problems({ agents: { fast: { model: 'fast' } } }, { models: ['fast'] }), [
    'agents.fast: an agent and a model must not have the same name, and "fast" is also under models',
  ]);
});

t.test('model lists may name disabled models, but each agent needs an enabled one', async (t) => {
  const sections = { models: ['a', 'b'] };
  t.strictSame(problems({ agents: { x: { model: ['a', 'b'] } } }, sections, ['a']), []);
  t.strictSame(problems({ agents: { x: { model: ['a', 'b'] }, y: { model: 'a' } } }, sections, ['a', 'b']), [
    'agents.x.model: no model is left: "a", "b" are disabled (optional, unless)',
    'agents.y.model: no model is left: "a" is disabled (optional, unless)',
  ]);
});

t.test('a token limit too small for a summary is an error with the policy summarize', async (t) => {
  const agent = (history: object | string) => ({ agents: { a: { model: 'fast', history } } });
  const sections = { models: ['fast'] };
  t.strictSame(problems(agent({ policy: 'summarize', maxTokens: 399 }), sections), [
    'agents.a.history.maxTokens: a summary needs at least 400 tokens; raise maxTokens or use the policy "truncate"',
  ]);
  for (const history of ['summarize', { policy: 'summarize', maxTokens: 400 }, { policy: 'summarize' }, { maxTokens: 10 }])
    t.strictSame(problems(agent(history), sections), []);
});

t.test('a prompt file is relative to the configuration, and an unreadable one is an error', async (t) => {
  const folder = t.testdir({ 'prompt.md': 'Be kind.\n' });
  const agents = { a: { model: 'fast', system: { file: './prompt.md' } } };
  t.strictSame(problems({ agents }, { models: ['fast'] }, [], folder), []);
  t.match(problems({ agents: { a: { model: 'fast', system: { file: './none.md' } } } }, { models: ['fast'] }, [], folder), [
    /agents\.a\.system\.file: cannot read the prompt .*none\.md: ENOENT/,
  ]);
  const model = new ScriptedModel([answerWith('x')]);
  const { runtime, target } = await startRuntime({
    agents: { a: agents.a },
    models: { fast: model },
    resolvePath: (path) => join(folder, path),
  });
  await collect(runtime.run(request(target('a'))));
  t.match(model.asked[0]?.messages[0], { role: 'system', content: 'Be kind.' });
});

t.test('faults of tools that appear at listing are reported with their place in the file', async (t) => {
  const two = { single: false, tools: () => [tool('b c', () => ''), tool('b_c', () => '')] };
  const app = { models: { fast: new ScriptedModel([]) }, tools: { a: two, clock: singleTool(() => '') } };
  const start = startRuntime({ ...app, agents: { x: { model: 'fast', tools: ['clock', 'a', 'a/nothing'] } } });
  const fault = await start.then(
    () => t.fail('it started'),
    (error: unknown) => error,
  );
  t.ok(fault instanceof ConfigFault);
  t.strictSame(fault instanceof ConfigFault && fault.problems, [
    {
      path: ['agents', 'x', 'tools'],
      message:
        'two tools have the name "a__b_c" at the model: a/b c and a/b_c; rename one of the entries, or list the tools to allow by name',
    },
    { path: ['agents', 'x', 'tools', 2], message: 'unknown tool "nothing"; entry "a" offers b c, b_c' },
  ]);
});

t.test('a new tool with a taken name or an invalid schema is skipped with a warning', async (t) => {
  let listed = [tool('a', () => '')];
  const model = new ScriptedModel(() => answerWith('x'));
  const { runtime, target, lines } = await startRuntime({
    agents: { x: { model: 'fast', tools: ['e'] } },
    models: { fast: model },
    tools: { e: { single: false, tools: () => listed } },
  });
  listed = [...listed, tool('a', () => ''), tool('bad', () => '', { x: { type: 'no-such-type' } })];
  await collect(runtime.run(request(target('x'))));
  await collect(runtime.run(request(target('x'))));
  t.strictSame(
    model.asked[1]?.tools.map(({ name }) => name),
    ['e__a'],
  );
  t.match(
    lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg),
    [
      /tool e\/bad has an invalid input schema and was skipped/,
      /two tools have the name "e__a" at the model: e\/a and e\/a; the newer one was skipped/,
    ],
  );
});
