import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { coldSessions } from '../src/server/cold-sessions.js';
import { composeServer } from '../src/server/compose.js';
import { digested } from '../src/server/running-config.js';
import { distribution, plugin } from './plugboard.js';

const FILES = {
  ...distribution,
  'tools.js': plugin('tools', 'ctx.contribute(kernel.ToolSources, { tools: () => [] });', '{ folder: { type: "string" } }'),
};

const YAML = `
transports: { web: { use: ./web.js } }
models: { fast: { use: ./model.js }, slow: { use: ./model.js } }
tools: { desk: { use: ./tools.js, folder: a }, shop: { use: ./tools.js, timeout: 10s } }
agents:
  assistant: { model: [fast, slow], system: Be brief., tools: [desk, shop] }
  clerk: { model: slow, system: { file: prompt.md }, maxSteps: 3 }
`;

const CHANGES: Readonly<Record<string, readonly [from: string, to: string, lines: readonly string[]]>> = {
  'another prompt': ['Be brief.', 'Be kind.', ['agents.assistant: its prompt']],
  'a prompt that is removed': ['system: Be brief., ', '', ['agents.assistant: its prompt']],
  'fewer tools': ['[desk, shop]', '[desk]', ['agents.assistant: its tools']],
  'another pattern of tools': ['[desk, shop]', '[desk/*, shop]', ['agents.assistant: its tools']],
  'another connection': ['[fast, slow]', '[slow, fast]', ['agents.assistant: its model connection']],
  'another model of a connection': [
    'fast: { use: ./model.js }',
    'fast: { use: ./model.js, key: k }',
    ['agents.assistant: models.fast'],
  ],
  'another option of a tool': [
    'folder: a',
    'folder: b',
    ['agents.assistant: tools.desk (if its tools, their descriptions or their schemas differ)'],
  ],
  'several at once': [
    'system: Be brief., tools: [desk, shop] }',
    'system: Be kind. }',
    ['agents.assistant: its prompt, its tools'],
  ],
  'the order of tools': ['[desk, shop]', '[shop, desk]', []],
  'the order of entries': [
    'desk: { use: ./tools.js, folder: a }, shop: { use: ./tools.js, timeout: 10s }',
    'shop: { use: ./tools.js, timeout: 10s }, desk: { use: ./tools.js, folder: a }',
    [],
  ],
  'a limit of a tool': ['timeout: 10s', 'timeout: 20s', []],
  'a limit of an agent': ['maxSteps: 3', 'maxSteps: 4', []],
  'a connection to fall back to': ['[fast, slow]', '[fast]', []],
  'an agent more': ['agents:', 'agents:\n  third: { model: fast }', []],
  'an agent less': ['  clerk: { model: slow, system: { file: prompt.md }, maxSteps: 3 }', '', []],
};

t.test('which sessions continue with another prefix after a change (AI-10)', async (t) => {
  const folder = t.testdir({ ...FILES, 'plugboard.yaml': YAML, 'prompt.md': 'Sell.' });
  const file = join(folder, 'plugboard.yaml');
  const imageOf = async (yaml: string) => {
    await writeFile(file, yaml);
    return (await composeServer({ file })).inspection.image;
  };
  const before = digested(await imageOf(YAML), 'salt');
  const lines = async (yaml: string) => {
    const values = await imageOf(yaml);
    return coldSessions({ before, after: digested(values, 'salt'), values, folder }).map((line) => line.trim());
  };
  for (const [title, [from, to, expected]] of Object.entries(CHANGES)) {
    t.ok(YAML.includes(from), title);
    t.strictSame(await lines(YAML.replace(from, to)), expected, title);
  }
  t.strictSame(await lines(YAML), []);
  await writeFile(join(folder, 'prompt.md'), 'Sell more.');
  t.strictSame(await lines(YAML), ['agents.clerk: its prompt'], 'a prompt in a file');
});
