import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Page } from '../support/page.js';
import { Shell } from '../support/shell.js';

/**
 * Runs the snippets of the short guides for authors. Those of the long guides have a file each.
 */

const root = join(import.meta.dirname, '../..');
const guide = (name: string) => new Page(join(root, 'docs/guides', name));

/** Commands that need a registry, or create the folder that the test has created. */
const NOT_RUN = /^(?:npm|mkdir) /;

/** A folder with the files of a page. Packages are found as in the repository. */
async function folderOf(t: Test, page: Page): Promise<string> {
  const folder = t.testdir({});
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { file, text } of page.blocks)
    if (file !== undefined && !/^plugin(?:s|-template)\//.test(file)) await writeFile(join(folder, file), text);
  return folder;
}

/** Runs the commands of a block and compares what they print. `…` is any text. */
async function runs(t: Test, shell: Shell, { text, line }: Page['blocks'][number]): Promise<void> {
  for (const [, command = '', shown = ''] of text.matchAll(/^\$ (.*)\n((?:(?!\$ ).*\n)*)/gm)) {
    if (NOT_RUN.test(command)) continue;
    const { code, output } = await shell.run(command);
    t.equal(code, 0, `line ${line}: ${command}\n${output}`);
    const pattern = shown
      .trimEnd()
      .split('…')
      .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'))
      .join('[\\s\\S]*');
    t.match(output.trimEnd(), new RegExp(`^${pattern}$`), `line ${line}: ${command}`);
  }
}

for (const name of [
  'embedding.md',
  'distributions.md',
  'writing-a-store.md',
  'writing-an-auth-provider.md',
  'writing-a-channel.md',
  'tool-interceptors.md',
  'agents-as-tools.md',
]) {
  t.test(`${name}: every command prints what the page shows`, async (t) => {
    const page = guide(name);
    const shell = new Shell(t, await folderOf(t, page));
    const blocks = page.in('console');
    t.ok(blocks.length > 0);
    for (const block of blocks) await runs(t, shell, block);
  });
}

for (const name of ['writing-a-store.md', 'writing-an-auth-provider.md', 'writing-a-channel.md']) {
  t.test(`${name}: the code is that of the tested templates`, async (t) => {
    const blocks = guide(name).in('ts');
    t.ok(blocks.length > 1);
    for (const { text, line } of blocks) {
      const [, file = '', code = ''] = /^\/\/ (\S+)\n([\s\S]*)$/.exec(text) ?? [];
      t.ok(readFileSync(join(root, file), 'utf8').includes(code), `line ${line}: ${file} contains the code`);
    }
  });
}

t.test('tool-interceptors.md: the code is that of the tested files', async (t) => {
  const blocks = guide('tool-interceptors.md').in('ts');
  const folder = join(root, 'test/guides/tool-interceptors');
  t.same(
    blocks.map(({ file }) => file).toSorted(),
    readdirSync(folder).filter((file) => !file.includes('.test.')),
  );
  for (const { file = '', text, line } of blocks) {
    t.equal(text, `// ${file}\n${readFileSync(join(folder, file), 'utf8')}`, `line ${line}: ${file}`);
  }
});

t.test('diagnostics.md: the plugins trace a request, end it when its budget is spent, and show their health', async (t) => {
  const folder = await folderOf(t, guide('diagnostics.md'));
  const yaml = readFileSync(join(folder, 'plugboard.yaml'), 'utf8');
  await writeFile(join(folder, 'plugboard.yaml'), yaml.replace('http: {}', 'http: { port: 0 }'));
  const server = new Shell(t, folder).start('npx plugboard start');
  const url = await server.prints(/address +(http:\S+)/);
  const body = JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'What time is it in Rome?' }] });
  const headers = { 'content-type': 'application/json' };
  const ask = () => fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
  const asked = await ask();
  t.equal(asked.status, 200);
  const { entries } = (await (await fetch(`${url}/v1/status`)).json()) as { entries: { entry: string }[] };
  t.match(
    entries.find(({ entry }) => entry === 'plugins.watch'),
    { status: 'running', health: 'ok' },
  );
  const refused = await ask();
  t.equal(refused.status, 429);
  t.match(await refused.json(), { error: { code: 'insufficient_quota', message: 'The budget is spent.' } });
  t.equal(await server.stop(), 0);
  const traced = server.stderr.split('\n').filter((line) => line.includes('"msg":"traced"'));
  t.match(
    traced.map((line) => JSON.parse(line)),
    [
      { operation: 'step', step: 1 },
      { operation: 'tool', tool: 'clock' },
      { operation: 'step', step: 2 },
      { operation: 'turn' },
      { operation: 'http' },
    ],
  );
});

t.test('diagnostics.md: lists all channels', async (t) => {
  const files = [
    'agent-runtime/src/engine/diagnostics/channels.ts',
    'transport-http/src/exchange/http-channel.ts',
    'plugin-usage/src/charging/charging.ts',
  ];
  const source = files.map((file) => readFileSync(join(root, 'plugins', file), 'utf8')).join('\n');
  const channels = [...source.matchAll(/hannel(?:<[^\n]*>)?\('(plugboard\.[\w.]+)'\)/g)].map(([, channel]) => channel);
  t.same(
    guide('diagnostics.md')
      .table('channel')
      .map(([channel]) => channel)
      .toSorted(),
    channels.toSorted(),
  );
});
