import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DefinedPlugin, JsonSchema } from '@plugboard/kernel';
import { API_VERSION, commonSchema, layout, OptionSchema, PLUGIN_BRAND } from '@plugboard/kernel/internal';
import { checkOptions } from '../context/options.js';
import { type TestContextOptions, testContext } from '../context/test-context.js';
import { Contract, type DeclareTest } from '../contract/contract.js';
import { waitFor } from '../contract/wait.js';
import { optionsOf, settingsList } from './settings-list.js';

/** Where the plugin's package is, and options to register it with. @experimental */
export interface PluginContractOptions extends TestContextOptions {
  /** The folder of the plugin's `package.json`: from a test, `new URL('..', import.meta.url)`. */
  readonly packageDir: string | URL;
}

/** The part of a `package.json` that the contract checks. */
interface Manifest {
  readonly name?: string;
  readonly type?: string;
  readonly exports?: unknown;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * Declares the tests that every packaged plugin passes, whatever it contributes.
 *
 * @param options.config options that a user could write, including all required ones. The plugin is
 * registered with them.
 * @experimental
 */
export function pluginContract<S extends JsonSchema>(
  test: DeclareTest,
  definition: DefinedPlugin<S>,
  { packageDir, ...context }: PluginContractOptions,
): void {
  const folder = packageDir instanceof URL ? fileURLToPath(packageDir) : packageDir;
  const manifest = async (): Promise<Manifest> => JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const contract = new Contract('A plugin', test);
  const { configSchema } = definition;

  contract.add('is defined with `definePlugin`', 'PluginDefinition', async () => {
    assert.equal(definition[PLUGIN_BRAND], true, 'the default export is not a value that definePlugin() returned');
  });
  contract.add("is built for this kernel's plugin API", 'PluginDefinition.apiVersion', async () => {
    assert.equal(definition.apiVersion, API_VERSION, `apiVersion is ${definition.apiVersion}, not ${API_VERSION}`);
  });
  contract.add('has the name of its package', 'PluginDefinition.name', async () => {
    const { name } = await manifest();
    assert.equal(definition.name, name, `the plugin is "${definition.name}", its package "${name}"`);
  });
  contract.add('has a summary of one line', 'PluginDefinition.summary', async () => {
    const { summary } = definition;
    assert.ok(/^\S.*$/.test(summary) && summary.length <= 120, `the summary has ${summary.length} characters: "${summary}"`);
  });
  contract.add('describes its options with a valid schema of an object', 'PluginDefinition.configSchema', async () => {
    assert.equal(configSchema.type, 'object', `configSchema.type is "${configSchema.type}"`);
    new OptionSchema(configSchema);
  });
  contract.add('has defaults that match the schema', 'PluginDefinition.configSchema', async () => {
    for (const { name, schema } of optionsOf(configSchema)) {
      if (schema.default === undefined) continue;
      const only = new OptionSchema({ type: 'object', properties: { default: schema } });
      const [fault] = only.check({ default: schema.default }).faults;
      assert.ok(fault === undefined, `the default of ${name}: ${fault?.message}`);
    }
  });
  contract.add('describes every option', 'PluginDefinition.configSchema', async () => {
    for (const { name, schema } of optionsOf(configSchema)) {
      assert.match(schema.description ?? '', /\S/, `the option ${name} has no description`);
    }
  });
  contract.add('leaves the options that belong to the file to it', 'docs/guides/writing-plugins.md', async () => {
    const points = new Set(
      testContext(definition, context)
        .contributions()
        .map(({ point }) => point),
    );
    const sections = Object.values(layout.sections).filter(
      ({ provides }) => provides === undefined || points.has(provides.point),
    );
    const reserved = sections.flatMap((section) =>
      section.topLevelOptions ? [] : Object.keys(commonSchema(section).properties ?? {}),
    );
    const own = Object.keys(configSchema.properties ?? {}).filter((name) => reserved.includes(name));
    assert.equal(
      own.length,
      0,
      `rename ${own.join(', ')}: every entry has such an option, and the plugin would never receive it`,
    );
  });
  contract.add('accepts the options of this test', 'PluginDefinition.configSchema', async () => {
    const { faults } = checkOptions(definition, context.config, context.check);
    assert.equal(faults.length, 0, faults.join('\n'));
  });
  contract.add('refuses unknown options', 'PluginDefinition.configSchema', async () => {
    const options = (context.config ?? {}) as Readonly<Record<string, unknown>>;
    const { faults } = checkOptions(definition, { ...options, noSuchOption: true }, context.check);
    assert.notEqual(faults.length, 0, 'it accepts the option "noSuchOption"; add `additionalProperties: false`');
  });
  contract.add('shows its options in the settings list of its README', 'docs/guides/writing-plugins.md', async () => {
    const readme = await readFile(join(folder, 'README.md'), 'utf8').catch(() => '');
    const [, shown] = /<!-- settings -->\n([\s\S]*?)\n<!-- \/settings -->/.exec(readme) ?? [];
    const table = settingsList(configSchema);
    assert.ok(shown === undefined || shown === table, `README.md: write between the marks for settings:\n${table}`);
  });
  contract.add('registers synchronously and contributes something', 'PluginDefinition.register', async () => {
    const { lifecycle, contributions } = testContext(definition, context);
    const runs = lifecycle.start !== undefined || lifecycle.stop !== undefined;
    assert.ok(runs || contributions().length > 0, 'it contributes nothing and returns no lifecycle');
  });
  contract.add('stops without having started, and twice', 'Lifecycle 6', async () => {
    const { lifecycle } = testContext(definition, context);
    const stop = async () => lifecycle.stop?.(new AbortController().signal);
    await waitFor('the first stop', stop());
    await waitFor('the second stop', stop());
  });
  contract.add('is an ES module with `exports`', 'docs/guides/writing-plugins.md', async () => {
    const { type, exports } = await manifest();
    assert.equal(type, 'module', 'package.json: "type" is not "module"');
    assert.ok(exports, 'package.json: "exports" is missing');
  });
  contract.add(
    'has the kernel as a peer dependency, so that a server has one copy',
    'docs/guides/writing-plugins.md',
    async () => {
      const { dependencies, peerDependencies } = await manifest();
      assert.ok(peerDependencies?.['@plugboard/kernel'], 'package.json: "peerDependencies" does not contain @plugboard/kernel');
      for (const shared of ['@plugboard/kernel', 'tsyringe', 'reflect-metadata']) {
        assert.equal(
          dependencies?.[shared],
          undefined,
          `package.json: "dependencies" contains ${shared}, which the kernel brings`,
        );
      }
    },
  );
}
