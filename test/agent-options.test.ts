/** The tables of the options that every operator needs, which are written by hand. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonSchema } from '@plugboard/kernel';
import t from 'tap';
import { configSchema } from '../plugins/agent-runtime/src/config.js';

const { agents, limits } = configSchema.properties;
const agentOptions: readonly [string, JsonSchema][] = Object.entries(agents.additionalProperties.properties);

t.test('docs/reference/configuration.md has every option of an agent with its default', async (t) => {
  const [, section = ''] = read('docs/reference/configuration.md').split('\n## Agents\n');
  const [table = ''] = section.split('\n## ');
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  for (const [name, schema] of agentOptions) {
    const row = rows.find((line) => line.slice(0, line.indexOf('|', 1)).includes(`\`${name}\``)) ?? '';
    t.ok(row, `${name} has a row: CONTRIBUTING.md says where else an option belongs`);
    if (schema.default !== undefined) t.match(row, textOf(schema.default), `the row of ${name} has the default`);
  }
});

t.test('docs/reference/reliability.md names the setting of every limit of the process', async (t) => {
  const page = read('docs/reference/reliability.md');
  for (const name of Object.keys(limits.properties)) t.match(page, `\`limits.${name}\``);
});

function read(page: string): string {
  return readFileSync(join(import.meta.dirname, '..', page), 'utf8');
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
