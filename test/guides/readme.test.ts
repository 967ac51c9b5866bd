import { globSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { type CodeBlock, Page } from '../support/page.js';
import { Shell } from '../support/shell.js';
import { addressOf, mistakesIn, NO_ACCOUNTS, root } from './snippets.js';

const readme = new Page(join(root, 'README.md'));

// Starts some programs, one after the other.
t.setTimeout(300_000);

t.test('the examples work with the distribution at the root', async (t) => {
  const folder = t.testdir({});
  const shell = new Shell(t, root, { ...NO_ACCOUNTS, PORT: '0', DATA_DIR: folder });
  const server = shell.start('npx plugboard start');
  const url = await addressOf(server);
  const here = (start: string): string => {
    const block = readme.blocks.find(({ text }) => text.startsWith(start));
    if (!block) throw new Error(`no block of the README begins with "${start}"`);
    return block.text.replaceAll('http://127.0.0.1:8080', url);
  };

  const streamed = await shell.run(here('curl '));
  t.match(streamed.output, /^data: \{.*"model":"assistant"/m);
  t.match(streamed.output, /\(Asia\/Tokyo\)[\s\S]*data: \[DONE\]/);

  const [command = '', question = '', ...shown] = here('$ npx plugboard chat').trim().split('\n');
  const chat = await shell.run(`echo '${question.replace('you › ', '')}' | ${command.replace('$ ', '')}`);
  const dateless = (line: string) => line.replace(/\w+day, \d+ \w+ \d{4} at \d\d:\d\d:\d\d/, 'NOW');
  t.strictSame(chat.output.split('\n').slice(0, shown.length).map(dateless), shown.map(dateless));

  await writeFile(join(folder, 'client.mjs'), here('import OpenAI'));
  t.match(await new Shell(t, folder).run('node client.mjs'), { code: 0, output: /operating\.md[\s\S]*writing-plugins\.md/ });
  t.equal(await server.stop(), 0);
});

t.test('lists all packages, commands and scripts', async (t) => {
  const linked = new Set(readme.links);
  for (const path of globSync('{plugins/*,plugin-template}/README.md', { cwd: root })) t.ok(linked.has(path), path);
  const { output } = await new Shell(t, root).run('npx plugboard --help');
  const first = (pattern: RegExp, text: string) => [...text.matchAll(pattern)].map(([, word]) => word).toSorted();
  t.strictSame(first(/^plugboard ([\w-]+)/gm, readme.text), first(/^ {2}([\w-]+) {2,}/gm, output));
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [, name = ''] of readme.text.matchAll(/npm (?:run )?(start|test|lint|format|bench)\b/g)) t.ok(scripts[name], name);
});

t.test('the clients that it lists are those of the tests, in these versions', async (t) => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const guide = readFileSync(join(root, 'docs/guides/coding-agents.md'), 'utf8');
  const tests = globSync('test/clients/*.test.ts', { cwd: root }).map((path) => readFileSync(join(root, path), 'utf8'));
  const version = (name: string) => devDependencies[name].replace(/^npm:openai@/, '');
  for (const [client, major, name] of [
    ['OpenAI SDK for JavaScript 6', 6, 'openai-6'],
    ['OpenAI SDK for JavaScript 6 and 7', 7, 'openai'],
    ['Anthropic SDK for JavaScript 1', 1, '@anthropic-ai/sdk'],
    ['AI SDK 7', 7, 'ai'],
    ['OpenAI Agents SDK 0.20', '0.20', '@openai/agents'],
  ] as const) {
    t.ok(readme.text.includes(`| ${client}`), client);
    t.ok(version(name).startsWith(`${major}.`), `${name} ${version(name)}`);
    t.ok(
      tests.some((text) => text.includes(`from '${name}'`)),
      name,
    );
  }
  for (const name of ['createOpenAICompatible', 'createOpenAI', 'createAnthropic', 'setDefaultOpenAIClient']) {
    t.ok(readme.text.includes(name) && tests.some((text) => text.includes(`${name}(`)), name);
  }
  for (const client of ['Claude Code 2.1', 'Codex CLI 0.169']) {
    t.ok(readme.text.includes(`| ${client} |`) && guide.includes(`| ${client}.`), client);
  }
});

t.test('the WebSocket example shows the events of an agent at work', async (t) => {
  const shell = new Shell(t, root, { ...NO_ACCOUNTS, PORT: '0', DATA_DIR: t.testdir({}) });
  const url = await addressOf(shell.start('npx plugboard start'));
  const [example] = readme.in('js').filter(({ text }) => text.includes('new WebSocket('));
  const program = `${example?.text.replace('ws://127.0.0.1:8080', url.replace('http', 'ws'))}
    ws.addEventListener('message', ({ data }) => JSON.parse(data).type === 'response.completed' && ws.close());`;
  const { output } = await shell.run(`node -e '${program.replaceAll("'", "'\\''")}'`);
  for (const type of [
    'response.created',
    'response.mcp_call.in_progress',
    'response.mcp_call.completed',
    'response.output_text.delta',
  ])
    t.ok(output.includes(type), type);
});

t.test('every configuration is valid in the sections of the file at the root', async (t) => {
  const folder = t.testdir({});
  for (const block of readme.in('yaml')) t.equal(await mistakesIn(inRootFile(block), folder), '', `line ${block.line}`);
});

t.test('the commands that create and revoke a token work', async (t) => {
  const folder = t.testdir({});
  const configuration = readme.in('yaml').find(({ text }) => text.includes('bearer:'));
  if (!configuration) throw new Error('the README has no configuration with "bearer"');
  await writeFile(join(folder, 'plugboard.yaml'), inRootFile(configuration));
  const shell = new Shell(t, folder);
  const [create = ''] = readme.blocks.flatMap(({ text }) => /^\$ (npx plugboard token create .*)$/m.exec(text)?.slice(1) ?? []);
  t.match(await shell.run(create), { code: 0, output: /^svcp_\w{38}$/m });
  const [revoke = ''] = /npx plugboard token revoke \w+/.exec(readme.text) ?? [];
  t.match(await shell.run(revoke), { code: 0, output: /revoked/ });
});

t.test('the librarian of the root distribution finds the guides, and each fits into one tool result', async (t) => {
  const { output } = await new Shell(t, root, NO_ACCOUNTS).run(`echo 'List the directory "."' | npx plugboard chat librarian`);
  for (const file of ['operating.md', 'writing-plugins.md']) t.match(output, `[FILE] ${file}`);
  for (const name of ['operating.md', 'writing-plugins.md'])
    t.ok(statSync(join(root, 'docs/guides', name)).size < 64 * 1024, 'is below the default resultLimit of 64kb');
});

/** The plugboard.yaml at the root with the entries of an example in its sections. */
function inRootFile({ text }: CodeBlock): string {
  const file: Record<string, object> = parse(readFileSync(join(root, 'plugboard.yaml'), 'utf8'));
  for (const [section, entries] of Object.entries<object>(parse(text))) file[section] = { ...file[section], ...entries };
  return stringify(file);
}
