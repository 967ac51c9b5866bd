import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonSchema } from '@plugboard/kernel';
import { type HostServer, LOG_SCHEMA } from '@plugboard/kernel/internal';
import t from 'tap';
import { layout } from '../kernel/src/layout.js';
import { configSchema } from '../plugins/agent-runtime/src/config.js';
import { Page } from './support/page.js';
import { TestServer } from './support/test-server.js';

/** A limit has one name: that of its option, in the file, in messages and in the documentation. */

const root = join(import.meta.dirname, '..');

/** The names of all options, at any depth. */
function optionsOf(schema: JsonSchema | boolean | undefined): string[] {
  if (schema === undefined || typeof schema === 'boolean') return [];
  const below = [schema.items, schema.additionalProperties, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const own = Object.entries(schema.properties ?? {});
  return [...own.flatMap(([name, part]) => [name, ...optionsOf(part)]), ...below.flatMap(optionsOf)];
}

const known = new Set([
  ...optionsOf(LOG_SCHEMA),
  ...Object.values(layout.sections).flatMap(({ shared = {} }) => Object.keys(shared)),
]);
for (const folder of globSync('plugins/*/src/index.ts', { cwd: root })) {
  const { default: plugin } = (await import(join(root, folder))) as { default?: { configSchema?: JsonSchema } };
  for (const name of optionsOf(plugin?.configSchema)) known.add(name);
}

/** What names a setting: `setting: 'limits.memory'`, `raise maxTokens`, `limits.drain`. */
const NAMED = [
  /\bsetting: ['`]([^'`]+)['`]/g,
  /\b(?:[Rr]aise|[Ll]ower|[Ii]ncrease) (?:the )?`?((?:\$\{\w+\}\.)?[a-z]+(?:\.[a-z]|[A-Z])[\w.]*)/g,
  /['` (](?:limits|log)\.([a-z]\w+)[`'. ,;)]/g,
];
const sources = globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root });

t.test('every setting that a message names is an option', async (t) => {
  let found = 0;
  for (const path of sources) {
    // Texts alone: code may have members of the same form.
    const texts = readFileSync(join(root, path), 'utf8').match(/setting: .*|'[^'\n]*'|`[^`\n]*`/g) ?? [];
    for (const pattern of NAMED) {
      for (const [, names = ''] of texts.join('\n').matchAll(pattern)) {
        for (const name of names.split(' or ')) {
          found++;
          t.ok(known.has(name.split('.').at(-1) ?? ''), `${path}: ${name}`);
        }
      }
    }
  }
  t.ok(found > 10, `${found} names`);
});

t.test('the budgets of a server have the names and settings of the guide, and no others', async (t) => {
  const { started } = await TestServer.start(t);
  const { budgets } = started.server as HostServer;
  const listed = new Page(join(root, 'docs/guides/operating.md')).table('name').map(([name, setting]) => [name, setting]);
  // The log of this server is kept in memory, without a budget.
  const shown = [...budgets.reports().map(({ name, setting }) => [name, setting]), ['log lines in memory', 'log.buffer']];
  t.same(shown.toSorted(), listed.toSorted());
});

t.test('every setting in the table of limits is an option', async (t) => {
  for (const [limit, , setting = ''] of new Page(join(root, 'docs/reference/reliability.md')).table('limit')) {
    if (setting === '–') continue;
    for (const one of setting.split(/, or |, | or /)) {
      const [name = ''] = one.split(/(?:^| )of /);
      if (name !== '') t.ok(known.has(name.split('.').at(-1) ?? ''), `${limit}: ${name}`);
    }
  }
});

t.test('the table of limits has every limit of the process', async (t) => {
  const settings = new Page(join(root, 'docs/reference/reliability.md')).table('limit').map(([, , setting = '']) => setting);
  for (const name of Object.keys(configSchema.properties.limits.properties))
    t.ok(
      settings.some((setting) => setting.includes(`limits.${name}`)),
      name,
    );
});
