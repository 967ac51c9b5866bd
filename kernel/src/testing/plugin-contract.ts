import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OptionSchema } from '../host/options/schema.js';
import type { JsonSchema } from '../host/options/schema-types.js';
import { API_VERSION, type DefinedPlugin, PLUGIN_BRAND } from '../host/plugin/plugin.js';
import { type TestContextOptions, testContext } from './context.js';
import { type ContractCase, soon } from './contract.js';
import { checkOptions } from './options.js';
import { entriesServedBy, README_SECTIONS, Readme } from './readme.js';
import { optionsOf, settingsTable } from './settings-table.js';

export interface PluginContractOptions extends TestContextOptions {
  /** The folder of the plugin's `package.json`: from a test, `new URL('..', import.meta.url)`. */
  readonly packageDir: string | URL;
}

/** The part of a `package.json` that the contract has to do with. */
interface Manifest {
  readonly name?: string;
  readonly type?: string;
  readonly exports?: unknown;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * What every plugin must keep to, whatever it extends.
 *
 * With `UPDATE_README=1` in the environment, the settings table of the README is written anew instead of being compared.
 *
 * @param options.config options that a user could write, with all that must be there: the plugin is registered with them.
 */
export function pluginContract<S extends JsonSchema>(
  definition: DefinedPlugin<S>,
  { packageDir, ...context }: PluginContractOptions,
): readonly ContractCase[] {
  const folder = packageDir instanceof URL ? fileURLToPath(packageDir) : packageDir;
  const manifest = async (): Promise<Manifest> => JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const readmePath = join(folder, 'README.md');
  const readme = async (): Promise<Readme> => new Readme(await readFile(readmePath, 'utf8'));

  const cases: Record<string, () => Promise<void>> = {
    'is made by definePlugin, for the plugin API of this kernel': async () => {
      assert.equal(definition[PLUGIN_BRAND], true, 'the default export is not what definePlugin() returned');
      assert.equal(definition.apiVersion, API_VERSION);
    },
    'is called like its package, and sums itself up in one line': async () => {
      assert.equal(definition.name, (await manifest()).name);
      assert.match(definition.summary, /^\S.{8,118}\S$/, 'the summary is no line of 10 to 120 characters');
      assert.doesNotMatch(definition.summary, /\.$/, 'the summary is no sentence: it has no full stop');
    },
    'describes its options by a strict schema of an object, which its own defaults satisfy': async () => {
      assert.equal(definition.configSchema.type, 'object');
      new OptionSchema(definition.configSchema);
      for (const { name, schema } of optionsOf(definition.configSchema)) {
        if (schema.default === undefined) continue;
        const only = new OptionSchema({ type: 'object', properties: { default: schema } });
        assert.deepEqual(only.check({ default: schema.default }).faults, [], `the default of ${name}`);
      }
    },
    'says of every option what it is for': async () => {
      for (const { name, schema } of optionsOf(definition.configSchema)) {
        assert.match(schema.description ?? '', /\S/, `the option ${name} has no description`);
      }
    },
    'takes the options that it is tested with, and no unknown ones': async () => {
      const options = (context.config ?? {}) as Readonly<Record<string, unknown>>;
      assert.deepEqual(checkOptions(definition, options, context.check).faults, []);
      assert.notDeepEqual(checkOptions(definition, { ...options, noSuchOption: true }, context.check).faults, []);
    },
    'registers in one go, and contributes something or has a life of its own': async () => {
      const { lifecycle, contributions } = testContext(definition, context);
      const lives = lifecycle.start !== undefined || lifecycle.stop !== undefined;
      assert.ok(lives || contributions().length > 0, 'it contributes nothing, and returns no lifecycle');
    },
    'stops without a start, and twice': async () => {
      const { lifecycle } = testContext(definition, context);
      const stop = async () => lifecycle.stop?.(new AbortController().signal);
      await soon('the first stop', stop());
      await soon('the second stop', stop());
    },
    'leaves the kernel to whoever installs it: a peer dependency, so that there is one copy': async () => {
      const { type, exports, dependencies, peerDependencies } = await manifest();
      assert.equal(type, 'module', 'package.json: "type" is not "module"');
      assert.ok(exports, 'package.json: "exports" is missing');
      assert.ok(peerDependencies?.['@plugboard/kernel'], 'package.json: @plugboard/kernel is not among "peerDependencies"');
      for (const shared of ['@plugboard/kernel', 'tsyringe', 'reflect-metadata']) {
        assert.equal(
          dependencies?.[shared],
          undefined,
          `package.json: ${shared} is among "dependencies"; it comes with the kernel`,
        );
      }
    },
    'has its definition in src/index.ts and its options in src/config.ts': async () => {
      for (const file of ['src/index.ts', 'src/config.ts']) assert.ok(existsSync(join(folder, file)), `${file} is missing`);
    },
    'has a README with its name, its summary, and the sections of every plugin': async () => {
      const { title, summary, sections } = await readme();
      assert.equal(title, definition.name);
      assert.ok(
        summary.startsWith(definition.summary),
        `the first paragraph does not begin with the summary: "${definition.summary}"`,
      );
      assert.deepEqual(
        sections.filter((section) => README_SECTIONS.some((known) => known === section)),
        README_SECTIONS,
      );
    },
    'has an example in its README that uses it with options that it takes': async () => {
      const { example } = await readme();
      assert.ok(example, 'the section "Example" has no block of YAML');
      const entries = entriesServedBy(definition.name, example);
      assert.notEqual(entries.length, 0, `no entry of the example is served by ${definition.name}`);
      for (const { id, options, references, commonKeys } of entries) {
        const unknown = new Set(references.map(({ path }) => path.join('.'))); // what a variable holds is not known here
        const { faults } = new OptionSchema(definition.configSchema).check(options, references, commonKeys);
        assert.deepEqual(
          faults.filter(({ path }) => !unknown.has(path.join('.'))),
          [],
          `the entry ${id} of the example`,
        );
      }
    },
    'has a settings table in its README that says what the schema says': async () => {
      const found = await readme();
      assert.ok(found.settings !== undefined, 'the README has no <!-- settings --> and <!-- /settings -->');
      const table = settingsTable(definition.configSchema);
      if (process.env.UPDATE_README === '1') await writeFile(readmePath, found.withSettings(table));
      else assert.equal(found.settings, table, 'the table is out of date: run the test once with UPDATE_README=1');
    },
  };
  return Object.entries(cases).map(([name, run]) => ({ name, run }));
}
