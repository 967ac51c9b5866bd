import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DefinedPlugin } from '@plugboard/kernel';
import { settingsList } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { OptionSchema } from '../kernel/src/host/options/schema.js';
import { entriesServedBy, README_SECTIONS, Readme } from './support/readme.js';

/**
 * The house style of our plugins: the files, the README, its example and its settings list.
 * `npm run readmes` writes the settings lists instead of comparing them.
 */

const root = join(import.meta.dirname, '..');
const folders = globSync('{plugins,plugin-template}/*', { cwd: root }).filter((folder) =>
  existsSync(join(root, folder, 'src/config.ts')),
);

t.ok(folders.length > 15, 'finds the plugins');
for (const folder of folders.toSorted()) {
  t.test(folder, async (t) => {
    const { default: plugin } = (await import(pathToFileURL(join(root, folder, 'src/index.ts')).href)) as {
      readonly default: DefinedPlugin;
    };
    const path = join(root, folder, 'README.md');
    const readme = new Readme(readFileSync(path, 'utf8'));

    t.notMatch(plugin.summary, /\.$/, 'the summary has no full stop');
    t.equal(readme.title, plugin.name);
    t.ok(readme.summary.startsWith(plugin.summary), `the first paragraph begins with the summary: "${plugin.summary}"`);
    t.same(
      readme.sections.filter((section) => README_SECTIONS.some((known) => known === section)),
      README_SECTIONS,
    );
    exampleIsValid(t, plugin, readme);

    const table = settingsList(plugin.configSchema);
    t.ok(readme.settings !== undefined, 'has <!-- settings --> and <!-- /settings -->');
    if (process.env.UPDATE_README === '1') writeFileSync(path, readme.withSettings(table));
    else t.equal(readme.settings, table, 'the settings list is that of the schema: run `npm run readmes` after a change');
  });
}

function exampleIsValid(t: Test, plugin: DefinedPlugin, { example }: Readme): void {
  assert(example, 'the section "Example" has a YAML block');
  const entries = entriesServedBy(plugin.name, example);
  t.ok(entries.length > 0, 'the example uses the plugin');
  for (const { id, options, references, commonKeys } of entries) {
    const variables = new Set(references.map(({ path }) => path.join('.'))); // their values are unknown
    const { faults } = new OptionSchema(plugin.configSchema).check(options, references, { keys: commonKeys, synonyms: {} });
    t.same(
      faults.filter(({ path }) => !variables.has(path.join('.'))),
      [],
      `the entry ${id} of the example`,
    );
  }
}
