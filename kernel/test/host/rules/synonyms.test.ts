import t from 'tap';
import { layout } from '../../../src/layout.js';
import { problemsOf } from '../distribution.js';

/** The problems of a file, without what the messages say about the plugin. */
async function problemsIn(t: Parameters<typeof problemsOf>[0], ...lines: string[]): Promise<string[]> {
  const problems = await problemsOf(
    t,
    { 'plugboard.yaml': [...(lines[0]?.startsWith('transports:') ? [] : ['transports: {}']), ...lines].join('\n') },
    { layout },
  );
  return problems.map((problem) => problem.replace(/^plugboard.yaml:\d+:\d+ /, '').replace(/ \(plugin .*$/, ''));
}

t.test('rule 2: words that other programs use for an option are answered with the option', async (t) => {
  const words: Record<string, string> = {
    prompt: 'system',
    instructions: 'system',
    system_prompt: 'system',
    systemPrompt: 'system',
    llm: 'model',
    max_turns: 'maxSteps',
  };
  for (const [word, option] of Object.entries(words))
    t.match(
      await problemsIn(t, 'models: { demo: {} }', `agents: { a: { model: demo, ${word}: x } }`),
      [`agents.a.${word}: unknown option, did you mean "${option}"?`],
      word,
    );
  const connection: Record<string, string> = { api_key: 'apiKey', key: 'apiKey', url: 'baseUrl', base_url: 'baseUrl' };
  for (const [word, option] of Object.entries(connection))
    t.match(
      await problemsIn(t, `models: { fast: { use: openai, model: m, ${word}: "x" } }`),
      [`models.fast.${word}: unknown option, did you mean "${option}"?`],
      word,
    );
  t.match(await problemsIn(t, 'models: { demo: {} }', 'agents: { a: { model: demo, max_tokens: 5, maxTokns: 5 } }'), [
    'agents.a.max_tokens: unknown option, did you mean params: { max_tokens: … }?',
    'agents.a.maxTokns: unknown option, did you mean "maxTokens"?',
  ]);
});

t.test('rule 2: so are those for a section', async (t) => {
  t.match(await problemsIn(t, 'mcpServers: {}', 'providers: {}', 'database: {}'), [
    'mcpServers: unknown section, did you mean "tools"?',
    'providers: unknown section, did you mean "models"?',
    'database: unknown section, did you mean "sessions"?',
  ]);
});

t.test("rule 1: a plugin of another section is answered with its section, and so is one at the file's top level", async (t) => {
  const named = (name: string, section: string) => `"${name}" is a plugin of another section; move it to \`${section}\``;
  t.match(
    await problemsIn(
      t,
      'transports: { metrics: {} }',
      'tools: { usage: {}, totals: { use: usage, optional: true }, memory: { command: npx } }',
      'plugins: { clock: {} }',
      'metrics: {}',
    ),
    [
      `transports.metrics: ${named('metrics', 'plugins')}`,
      `tools.usage: ${named('usage', 'plugins')}`,
      `tools.totals.use: ${named('usage', 'plugins')}`,
      /^tools\.memory: .*; add use: mcp/,
      `plugins.clock: ${named('clock', 'tools')}`,
      'metrics: unknown section; as the name of a plugin, write it under `plugins`',
    ],
  );
});

t.test('rule 1: an entry without a use that cannot be found is answered with what its options mean', async (t) => {
  t.match(
    await problemsIn(
      t,
      'models: { a: { provider: openai, model: m }, b: { model: m, apiKey: k }, c: { provider: "not a name" } }',
      'tools: { d: { command: npx }, e: { x: 1 } }',
    ),
    [
      'models.a: the entry has no "use", so its key names the plugin, and @plugboard/model-a is not installed; add use: openai',
      /^models\.b: .*; add use: openai(?! or)/,
      /^models\.c: .*; add "use" with the name or the path of a plugin, or install/,
      /^tools\.d: .*; add use: mcp(?! or)/,
      /^tools\.e: .*; add "use" with the name or the path of a plugin, or install/,
    ],
  );
});
