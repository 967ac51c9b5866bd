import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { type DefinedPlugin, definePlugin, type JsonSchema, ToolSources } from '../../src/index.js';
import { pluginContract } from '../../src/testing/index.js';
import { failing, verdict } from './failing.js';

const SCHEMA = {
  type: 'object',
  properties: {
    pace: { type: 'string', format: 'duration', description: 'How fast.', default: '20ms' },
    url: { type: 'string', format: 'url', description: 'Where.' },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

const GOOD = definePlugin({
  name: '@plugboard/tool-thing',
  apiVersion: 1,
  summary: 'Does a thing',
  configSchema: SCHEMA,
  register: (ctx) => {
    ctx.contribute(ToolSources, { single: false, tools: () => [] });
  },
});

/** The same plugin with something about it changed. */
function plugin(change: Partial<DefinedPlugin>): DefinedPlugin {
  return { ...(GOOD as unknown as DefinedPlugin), ...change };
}

const MANIFEST = {
  name: '@plugboard/tool-thing',
  type: 'module',
  exports: './dist/index.js',
  peerDependencies: { '@plugboard/kernel': '0.1.0' },
};

const README = `# @plugboard/tool-thing

Does a thing, and
nothing else.

## What it does

\`\`\`md
# no heading
## Settings
\`\`\`

## Example

\`\`\`yaml
tools:
  thing: { pace: 1s, timeout: 5s, url: "\${THING_URL}" }
  other: { use: something-else, paces: 3 }
\`\`\`

## Settings

<!-- settings -->
| option | type     | default | meaning   |
| ------ | -------- | ------- | --------- |
| \`pace\` | duration | \`20ms\`  | How fast. |
| \`url\`  | URL      | none    | Where.    |
<!-- /settings -->

More about them.

## Of its own

## When things go wrong
`;

/** A package on disk. A file that is undefined is not there. */
async function packageOf(files: Readonly<Record<string, string | undefined>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plugin-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, 'src'));
  const all = {
    'package.json': JSON.stringify(MANIFEST),
    'README.md': README,
    'src/index.ts': '',
    'src/config.ts': '',
    ...files,
  };
  for (const [path, text] of Object.entries(all)) if (text !== undefined) await writeFile(join(folder, path), text);
  return folder;
}

const whole = packageOf();

async function faultsOf(definition: DefinedPlugin, config: object = {}): Promise<readonly string[]> {
  return failing(pluginContract(definition, { packageDir: await whole, config }));
}

async function faultsIn(files: Readonly<Record<string, string | undefined>>): Promise<readonly string[]> {
  return failing(pluginContract(GOOD, { packageDir: await packageOf(files) }));
}

const BRAND = 'is made by definePlugin, for the plugin API of this kernel';
const NAME = 'is called like its package, and sums itself up in one line';
const STRICT = 'describes its options by a strict schema of an object, which its own defaults satisfy';
const DESCRIBED = 'says of every option what it is for';
const OPTIONS = 'takes the options that it is tested with, and no unknown ones';
const REGISTERS = 'registers in one go, and contributes something or has a life of its own';
const STOPS = 'stops without a start, and twice';
const PEER = 'leaves the kernel to whoever installs it: a peer dependency, so that there is one copy';
const FILES = 'has its definition in src/index.ts and its options in src/config.ts';
const SECTIONS = 'has a README with its name, its summary, and the sections of every plugin';
const EXAMPLE = 'has an example in its README that uses it with options that it takes';
const TABLE = 'has a settings table in its README that says what the schema says';

t.test('a plugin that keeps the contract passes, its folder given as a path or a URL', async (t) => {
  t.same(await failing(pluginContract(GOOD, { packageDir: await whole })), []);
  t.same(await failing(pluginContract(GOOD, { packageDir: pathToFileURL(`${await whole}/`) })), []);
  t.same(await faultsOf(plugin({ register: () => ({ start: () => undefined }) })), [], 'a life is as good as a contribution');
});

t.test('faults of the definition', async (t) => {
  const { name, apiVersion, summary, configSchema, register } = GOOD as unknown as DefinedPlugin;
  t.same(await faultsOf({ name, apiVersion, summary, configSchema, register } as DefinedPlugin), [BRAND]);
  t.same(await faultsOf(plugin({ apiVersion: 2 })), [BRAND]);
  t.same(await faultsOf(plugin({ name: '@plugboard/tool-other' })), [NAME, SECTIONS, EXAMPLE]);
  t.same(await faultsOf(plugin({ summary: 'Does a thing.' })), [NAME, SECTIONS]);
  t.same(await faultsOf(plugin({ summary: 'Does\na thing' })), [NAME, SECTIONS]);
  t.same(await faultsOf(plugin({ register: () => undefined })), [REGISTERS]);
  const async = { register: (async () => ({})) as unknown as DefinedPlugin['register'] };
  t.same(await faultsOf(plugin(async)), [REGISTERS, STOPS]);
  let stopped = 0;
  const once = () => ({
    stop: () => {
      if (stopped++ > 0) throw new Error('already stopped');
    },
  });
  t.same(await faultsOf(plugin({ register: once })), [STOPS]);
});

t.test('faults of the options', async (t) => {
  const withPace = (pace: object, more: object = {}) =>
    plugin({ configSchema: { ...SCHEMA, properties: { ...SCHEMA.properties, pace }, ...more } });
  t.ok((await faultsOf(withPace({ type: 'string', minimum: 3, description: 'How fast.', default: '20ms' }))).includes(STRICT));
  t.ok(
    (await faultsOf(withPace({ type: 'string', format: 'duration', description: 'How fast.', default: 'soon' }))).includes(
      STRICT,
    ),
  );
  t.same(await faultsOf(withPace({ type: 'string', format: 'duration', default: '20ms' })), [DESCRIBED, TABLE]);
  t.same(await faultsOf(withPace(SCHEMA.properties.pace, { additionalProperties: true })), [OPTIONS]);
  t.ok((await faultsOf(plugin({}), { pace: 3 })).includes(OPTIONS));
  t.ok((await faultsOf(plugin({ configSchema: { type: 'array' } }))).includes(STRICT));
});

t.test('faults of the package', async (t) => {
  const manifest = (change: object) => ({ 'package.json': JSON.stringify({ ...MANIFEST, ...change }) });
  t.same(await faultsIn(manifest({ name: 'other' })), [NAME]);
  t.same(await faultsIn(manifest({ peerDependencies: {} })), [PEER]);
  t.same(await faultsIn(manifest({ dependencies: { tsyringe: '4' } })), [PEER]);
  t.same(await faultsIn(manifest({ type: 'commonjs' })), [PEER]);
  t.same(await faultsIn(manifest({ exports: undefined })), [PEER]);
  t.same(await faultsIn({ 'src/config.ts': undefined }), [FILES]);
  t.same(await faultsIn({ 'README.md': undefined }), [SECTIONS, EXAMPLE, TABLE]);
});

t.test('faults of the README', async (t) => {
  const readme = (from: string, to: string) => ({ 'README.md': README.replace(from, to) });
  t.same(await faultsIn(readme('# @plugboard/tool-thing', '# Thing')), [SECTIONS]);
  t.same(await faultsIn(readme('Does a thing', 'Makes a thing')), [SECTIONS]);
  t.same(await faultsIn(readme('## When things go wrong', '## Trouble')), [SECTIONS]);
  t.same(await faultsIn(readme('## What it does\n', '')), [SECTIONS]);
  t.same(await faultsIn(readme('```yaml', '```')), [EXAMPLE]);
  t.same(await faultsIn(readme('  thing:', '  thong:')), [EXAMPLE]);
  t.same(await faultsIn(readme('pace: 1s', 'paec: 1s')), [EXAMPLE]);
  t.same(await faultsIn(readme('pace: 1s', 'pace: soon')), [EXAMPLE]);
  t.same(await faultsIn(readme('<!-- settings -->', '')), [TABLE]);
  t.same(await faultsIn(readme('How fast.', 'How quick.')), [TABLE]);
  t.same(await faultsIn({ 'README.md': 'nothing yet' }), [SECTIONS, EXAMPLE, TABLE]);
  t.match(await verdict(pluginContract(GOOD, { packageDir: await packageOf(readme('20ms', '30ms')) }), TABLE), 'UPDATE_README=1');
});

t.test('an example may name the plugin by a path, as one does before it is published', async (t) => {
  const example = (text: string) => ({ 'README.md': README.replace(/tools:\n.*?```/s, `${text}\`\`\``) });
  t.same(await faultsIn(example('tools:\n  x: { use: ./thing, pace: 1s }\n')), []);
  t.same(await faultsIn(example('tools:\n  x: { use: ./thing, paec: 1s }\n')), [EXAMPLE]);
  t.same(await faultsIn(example('tools:\n  x: { use: "@plugboard/tool-thing" }\n  y: { use: ./other, z: 1 }\n')), []);
});

t.test('with UPDATE_README=1 the settings table is written anew, and nothing else of the README', async (t) => {
  const folder = await packageOf({ 'README.md': README.replace('How fast.', 'Outdated.').replaceAll('\n', '\r\n') });
  process.env.UPDATE_README = '1';
  t.teardown(() => delete process.env.UPDATE_README);
  t.same(await failing(pluginContract(GOOD, { packageDir: folder })), []);
  t.equal(await readFile(join(folder, 'README.md'), 'utf8'), README);
});
