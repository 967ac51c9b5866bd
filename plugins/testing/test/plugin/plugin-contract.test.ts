import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type DefinedPlugin, definePlugin, type JsonSchema, ToolSources } from '@plugboard/kernel';
import t from 'tap';
import { type PluginContractOptions, pluginContract } from '../../src/plugin/plugin-contract.js';
import { settingsList } from '../../src/plugin/settings-list.js';
import { casesOf, failing } from '../failing.js';

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

/** A folder with a `package.json`, changed in one respect. */
async function packageOf(change: object = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plugin-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...MANIFEST, ...change }));
  return folder;
}

t.test('the settings list of a README is that of the schema, if there is one', async (t) => {
  const NAME = 'shows its options in the settings list of its README';
  const faults = async (readme: string) => {
    const packageDir = await packageOf();
    await writeFile(join(packageDir, 'README.md'), readme);
    return faultsOfContract(GOOD, { packageDir });
  };
  const marked = (table: string) => `# Thing\n\n<!-- settings -->\n${table}\n<!-- /settings -->\n`;
  t.strictSame(await faults('# Thing\n'), []);
  t.strictSame(await faults(marked(settingsList(SCHEMA))), []);
  t.strictSame(await faults(marked(settingsList(SCHEMA).replace('20ms', '30ms'))), [NAME]);
});

const whole = packageOf();

function faultsOfContract(definition: DefinedPlugin, options: PluginContractOptions): Promise<readonly string[]> {
  return failing(casesOf((test) => pluginContract(test, definition, options)));
}

async function faultsOf(definition: DefinedPlugin, config: object = {}): Promise<readonly string[]> {
  return faultsOfContract(definition, { packageDir: await whole, config });
}

async function faultsIn(change: object): Promise<readonly string[]> {
  return faultsOfContract(GOOD, { packageDir: await packageOf(change) });
}

const BRAND = 'is defined with `definePlugin`';
const API = "is built for this kernel's plugin API";
const NAME = 'has the name of its package';
const SUMMARY = 'has a summary of one line';
const SCHEMA_VALID = 'describes its options with a valid schema of an object';
const DEFAULTS = 'has defaults that match the schema';
const DESCRIBED = 'describes every option';
const OF_FILE = 'leaves the options that belong to the file to it';
const ACCEPTS = 'accepts the options of this test';
const UNKNOWN = 'refuses unknown options';
const REGISTERS = 'registers synchronously and contributes something';
const STOPS = 'stops without having started, and twice';
const MODULE = 'is an ES module with `exports`';
const PEER = 'has the kernel as a peer dependency, so that a server has one copy';

t.test('passes a correct plugin, with its folder as a path or a URL', async (t) => {
  t.same(await faultsOfContract(GOOD, { packageDir: await whole }), []);
  t.same(await faultsOfContract(GOOD, { packageDir: pathToFileURL(`${await whole}/`) }), []);
  t.same(await faultsOf(plugin({ register: () => ({ start: () => undefined }) })), [], 'a lifecycle without contributions');
});

t.test('finds mistakes in the definition', async (t) => {
  const { name, apiVersion, summary, configSchema, register } = GOOD as unknown as DefinedPlugin;
  t.same(await faultsOf({ name, apiVersion, summary, configSchema, register } as DefinedPlugin), [BRAND]);
  t.same(await faultsOf(plugin({ apiVersion: 2 })), [API]);
  t.same(await faultsOf(plugin({ name: '@plugboard/tool-other' })), [NAME]);
  t.same(await faultsOf(plugin({ summary: '' })), [SUMMARY]);
  t.same(await faultsOf(plugin({ summary: 'Does\na thing' })), [SUMMARY]);
  t.same(await faultsOf(plugin({ register: () => undefined })), [OF_FILE, REGISTERS, STOPS]);
  const async = { register: (async () => ({})) as unknown as DefinedPlugin['register'] };
  t.ok((await faultsOf(plugin(async))).includes(REGISTERS));
  let stopped = 0;
  const once = () => ({
    stop: () => {
      if (stopped++ > 0) throw new Error('already stopped');
    },
  });
  t.same(await faultsOf(plugin({ register: once })), [STOPS]);
});

t.test('finds mistakes in the option schema', async (t) => {
  const withPace = (pace: object, more: object = {}) =>
    plugin({ configSchema: { ...SCHEMA, properties: { ...SCHEMA.properties, pace }, ...more } });
  const wrongKeyword = withPace({ type: 'string', minimum: 3, description: 'How fast.', default: '20ms' });
  t.ok((await faultsOf(wrongKeyword)).includes(SCHEMA_VALID));
  const wrongDefault = withPace({ type: 'string', format: 'duration', description: 'How fast.', default: 'soon' });
  t.ok((await faultsOf(wrongDefault)).includes(DEFAULTS));
  t.same(await faultsOf(withPace({ type: 'string', format: 'duration', default: '20ms' })), [DESCRIBED]);
  t.same(await faultsOf(withPace(SCHEMA.properties.pace, { additionalProperties: true })), [UNKNOWN]);
  const option = { type: 'string', description: 'How long.' };
  for (const name of ['timeout', 'optional']) {
    const properties = { ...SCHEMA.properties, [name]: option };
    t.same(await faultsOf(plugin({ configSchema: { ...SCHEMA, properties } })), [OF_FILE], name);
  }
  t.ok((await faultsOf(plugin({}), { pace: 3 })).includes(ACCEPTS));
  t.ok((await faultsOf(plugin({ configSchema: { type: 'array' } }))).includes(SCHEMA_VALID));
});

t.test('finds mistakes in package.json', async (t) => {
  t.same(await faultsIn({ name: 'other' }), [NAME]);
  t.same(await faultsIn({ peerDependencies: {} }), [PEER]);
  t.same(await faultsIn({ dependencies: { tsyringe: '4' } }), [PEER]);
  t.same(await faultsIn({ type: 'commonjs' }), [MODULE]);
  t.same(await faultsIn({ exports: undefined }), [MODULE]);
});
