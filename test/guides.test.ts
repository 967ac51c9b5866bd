/**
 * What the guides and the root README say is tried. For whoever writes them, a block of code is
 *
 * - a file, where its first line is a comment with a name (`# plugboard.yaml`, `// dice.ts`), or the name stands behind the language (JSON has no
 *   comments). All files of a page stand in one folder;
 * - `yaml` without a name: a piece of a `plugboard.yaml`. Sections that it lacks are added (`COMPLETION`), and all must be well;
 * - `yaml wrong`: a file with mistakes, for a command to find;
 * - `ts`: always a file. All are compiled together, by the `tsc` that the page tells to run;
 * - `console`: commands behind `$`, run in order, and what they print, with `…` for anything. A number behind the word is the exit code. What asks a
 *   registry is not run;
 * - `json`, `ini` and `nginx`: to be read.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import * as kernel from '@plugboard/kernel';
import { type DefinedPlugin, type ExtensionPoint, ModelConnectors } from '@plugboard/kernel';
import { CapturedLog, ModelServer, modelConnectorContract, modelRequest, testContext } from '@plugboard/kernel/testing';
import * as chatCompletions from '@plugboard/transport-chat-completions';
import * as http from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import { ConfigError } from '../kernel/src/host/errors.js';
import { compose } from '../kernel/src/host/kernel.js';
import { layout } from '../kernel/src/layout.js';
import { type Block, Page } from './support/page.js';
import { type Running, Shell } from './support/shell.js';

const root = join(import.meta.dirname, '..');
const operators = new Page(join(root, 'docs/guides/operating.md'));
const plugins = new Page(join(root, 'docs/guides/writing-plugins.md'));
const readme = new Page(join(root, 'README.md'));

/** What a piece of a configuration is completed with, section by section. */
const COMPLETION = {
  transports: 'transports: { http: {}, chat-completions: {} }',
  models: 'models: { fast: { use: demo }, local: { use: demo } }',
  tools: 'tools: { clock: {} }',
};

/** What `${NAME}` stands for in the pages' configurations. */
const VARIABLES = {
  OPENAI_API_KEY: 'key',
  OLLAMA_HOST: '127.0.0.1:11434',
  DESK_TOKEN: 'token',
  OPS_TOKEN: 'token-of-the-operators',
};

/** The accounts that the distribution at the root would use, had a `.env` there named them: no test talks to a real model. */
const NO_ACCOUNTS = { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', GEMINI_API_KEY: '', OLLAMA_HOST: '' };

/** Commands that ask a registry, or make the folder that the test has made already. */
const NOT_RUN = /^(?:npm|mkdir) /;

// Programs are started here one after the other, some twenty of them.
t.setTimeout(300_000);

for (const [name, page] of Object.entries({ operators, plugins, README: readme })) {
  t.test(`${name}.md: every configuration can be run, and those that are said to be wrong cannot`, async (t) => {
    const folder = await folderOf(t, page);
    for (const block of page.in('yaml')) {
      const mistakes = await mistakesIn(completed(block), folder);
      if (block.note === 'wrong') t.not(mistakes, '', `line ${block.line}`);
      else t.equal(mistakes, '', `line ${block.line}`);
    }
  });
}

for (const [name, page] of Object.entries({ operators, plugins })) {
  t.test(`${name}.md: every block of code is one that is checked`, async (t) => {
    for (const { language, file, text, line } of page.blocks) {
      t.ok(['yaml', 'ts', 'json', 'console', 'ini', 'nginx'].includes(language), `line ${line} is in a known language`);
      if (language === 'ts') t.ok(file?.endsWith('.ts'), `line ${line} says which file it is`);
      if (language === 'json') t.doesNotThrow(() => JSON.parse(text), `line ${line} is JSON`);
    }
  });

  t.test(
    `${name}.md: the packages that it tells to install are of this repository, or what they are compiled with`,
    async (t) => {
      const manifests = globSync('{kernel,plugins/*}/package.json', { cwd: root });
      const ours = manifests.map((path) => JSON.parse(readFileSync(join(root, path), 'utf8')).name);
      const known = new Set([...ours, 'typescript', '@types/node', '@you/plugboard-tool-tickets']);
      const installs = page
        .in('console')
        .flatMap(commandsOf)
        .filter(({ command }) => command.startsWith('npm install '));
      const wanted = installs.flatMap(({ command }) => command.split(' ').slice(2)).filter((word) => !word.startsWith('-'));
      t.strictSame(
        wanted.filter((word) => !known.has(word)),
        [],
      );
    },
  );
}

t.test('operating.md: every command prints what it is said to print', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  await tryCommands(t, operators, { OPENAI_BASE_URL: models.url });
  t.match(models.requests[0]?.headers, { authorization: /^Bearer sk-/ }, 'the key comes from .env');
});

t.test('operating.md: the tables of options have them all, with their defaults', async (t) => {
  const { output } = await new Shell(t, await folderOf(t, operators)).run('npx plugboard schema');
  const { properties, definitions } = JSON.parse(output) as FileSchema;
  const told = (heading: string) => Object.fromEntries(operators.table(heading).map(([option = '', value]) => [option, value]));
  t.strictSame(told('key'), defaults(properties.agents?.additionalProperties));
  t.strictSame(told('option under limits'), defaults(properties.limits));
  t.strictSame(told('option of http'), withoutCommon(defaults(definitions['transports.@plugboard.transport-http'])));
  t.strictSame(told('option of every tool entry'), withoutCommon(defaults(properties.tools?.properties?.clock)));
  t.strictSame(Object.keys({ $schema: '', ...told('section') }).toSorted(), Object.keys(properties).toSorted());
});

t.test('operating.md: the log has the fields and messages that it is said to have', async (t) => {
  const sources = globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root }).map((path) => readFileSync(join(root, path), 'utf8'));
  for (const [message = ''] of operators.table('msg'))
    t.ok(
      sources.some((source) => source.includes(message)),
      message,
    );

  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const shell = new Shell(t, await folderOf(t, operators), { PORT: '0', OPENAI_BASE_URL: models.url });
  const server = shell.start('npx plugboard start');
  const url = await addressOf(server);
  const headers = { 'x-request-id': 'mine' };
  t.equal((await chat(url, { model: 'assistant', session_id: 'a', stream: true }, ['Hi'], headers)).status, 200);
  t.equal((await chat(url, { model: '' }, ['Hi'])).status, 400);
  t.equal((await fetch(`${url}/nowhere`)).status, 404);
  t.equal((await fetch(`${url}/v1/chat/completions`)).status, 405);
  t.equal(await server.stop(), 0);

  const lines: Record<string, unknown>[] = server.stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const everyLine = ['time', 'level', 'msg', 'service', 'version', 'pid'];
  for (const line of lines) t.hasOwnProps(line, everyLine);
  const requests = lines.filter(({ msg }) => msg === 'request');
  t.match(requests[0], {
    plugin: '@plugboard/transport-http',
    entry: 'transports.http',
    client_request_id: 'mine',
    outcome: 'ok',
  });
  const told = operators.table('field').flatMap(([fields = '']) => fields.split(', '));
  const fields = new Set(requests.flatMap((line) => Object.keys(line)));
  const ofCredentials = ['token_id', 'token_name', 'refused', 'scope', 'address', 'left_out']; // of which an open server knows nothing
  // `path` is told of beside `route`.
  t.strictSame([...fields, ...ofCredentials].toSorted(), [...everyLine, 'plugin', 'entry', ...told, 'path'].toSorted());
});

t.test('writing-plugins.md: every command prints what it is said to print; its code compiles and its tests pass', async (t) => {
  await tryCommands(t, plugins);
});

t.test('writing-plugins.md: the plugins do in a running server what they are there for', async (t) => {
  const folder = await folderOf(t, plugins);
  const file = `
    transports: { http: { port: 0 }, chat-completions: {}, agent-cards: { use: ./agent-cards.ts } }
    models: { demo: {}, lines: { use: ./line-model.ts, url: "${await lineServer(t)}", model: small } }
    tools: { notes: { use: ./notes.ts, path: ./notes.txt } }
    plugins: { meter: { use: ./turn-meter.ts, maxMessages: 2 } }
    agents: { secretary: { description: Writes things down, model: demo, tools: [notes] } }
  `;
  await writeFile(join(folder, 'all.yaml'), file);
  const server = new Shell(t, folder).start('npx plugboard start -c all.yaml');
  const url = await addressOf(server);

  const said = await chat(url, { model: 'lines' }, ['Hello']);
  t.match(await said.json(), {
    choices: [{ message: { content: 'You said: Hello' } }],
    usage: { prompt_tokens: 1, completion_tokens: 3 },
  });
  const noted = await chat(url, { model: 'secretary' }, ['Write a note: "buy milk"']);
  t.match(await noted.json(), { choices: [{ message: { content: /Noted\./ } }] });
  t.match(readFileSync(join(folder, 'notes.txt'), 'utf8'), /^\d{4}-\d\d-\d\dT[\d:.]+Z buy milk\n$/);
  const refused = await chat(url, { model: 'secretary' }, ['one', 'two', 'three']);
  t.equal(refused.status, 400);
  t.match(await refused.json(), {
    error: { message: 'This conversation has more than 2 messages; begin a new one.', param: 'messages' },
  });
  const card = await fetch(`${url}/v1/agents/secretary`);
  t.strictSame(await card.json(), { name: 'secretary', description: 'Writes things down' });
  t.equal((await fetch(`${url}/v1/agents/nobody`)).status, 404);

  t.equal(await server.stop(), 0);
  const metered = server.stderr.split('\n').filter((line) => line.includes('"msg":"turn"'));
  t.match(
    metered.map((line) => JSON.parse(line)),
    [{ plugin: '@you/plugboard-plugin-turn-meter', agent: 'lines', read: 1, written: 3 }, { agent: 'secretary' }],
  );
});

t.test('writing-plugins.md: the model connector keeps to the contract of its kind', async (t) => {
  const module = pathToFileURL(join(await folderOf(t, plugins), 'line-model.ts')).href;
  const { default: plugin } = (await import(module)) as { default: DefinedPlugin };
  const url = await lineServer(t);
  const open = (model: string) => testContext(plugin, { config: { url, model } }).contributed(ModelConnectors);
  for (const c of modelConnectorContract(() => open('small'), { text: modelRequest('Hello') })) t.test(c.name, c.run);
  const refused = open('nobody').stream(modelRequest('Hello'), new AbortController().signal);
  await t.rejects(refused[Symbol.asyncIterator]().next(), { message: 'it answered with status 404.', retryable: false });
});

t.test('writing-plugins.md: the table of extension points has them all', async (t) => {
  const homes = {
    '@plugboard/kernel': kernel,
    '@plugboard/transport-http': http,
    '@plugboard/transport-chat-completions': chatCompletions,
  };
  const points = Object.entries(homes).flatMap(([home, exported]) =>
    Object.entries(exported).flatMap(([name, value]) => (isPoint(value) ? [`${name} ${value.id} ${home}`] : [])),
  );
  const told = plugins.table('point').map((cells) => cells.slice(0, 3).join(' '));
  t.strictSame(told.toSorted(), points.toSorted());
});

t.test('README.md: what it shows works with the distribution at the root', async (t) => {
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

t.test('README.md: what is in the box is what is there', async (t) => {
  const linked = new Set(readme.links);
  for (const path of globSync('{plugins/*,plugin-template}/README.md', { cwd: root })) t.ok(linked.has(path), path);
  const { output } = await new Shell(t, root).run('npx plugboard --help');
  const first = (pattern: RegExp, text: string) => [...text.matchAll(pattern)].map(([, word]) => word).toSorted();
  t.strictSame(first(/^plugboard (\w+)/gm, readme.text), first(/^ {2}(\w+) {2,}/gm, output));
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [, name = ''] of readme.text.matchAll(/npm (?:run )?(start|test|lint|format|bench)\b/g)) t.ok(scripts[name], name);
});

t.test('every link of the pages leads somewhere', async (t) => {
  const pages = { 'docs/guides/operating.md': operators, 'docs/guides/writing-plugins.md': plugins, 'README.md': readme };
  for (const [path, page] of Object.entries(pages)) {
    for (const link of page.links) {
      const [file = '', anchor] = link.split('#');
      const target = join(root, file === '' ? path : join(dirname(path), file));
      t.ok(existsSync(target), `${path}: ${link}`);
      if (anchor !== undefined) t.ok(new Page(target).anchors.includes(anchor), `${path}: ${link}`);
    }
  }
});

t.test('the librarian of the root distribution finds the guides by name, and can read each in one piece', async (t) => {
  const { output } = await new Shell(t, root, NO_ACCOUNTS).run(`echo 'List the directory "."' | npx plugboard chat librarian`);
  for (const file of ['operating.md', 'writing-plugins.md']) t.match(output, `[FILE] ${file}`);
  for (const { text } of [operators, plugins]) t.ok(Buffer.byteLength(text) < 64 * 1024, 'a tool result of 64kb is not cut');
});

/** A folder with all the files of a page, and the prompts that its configurations name. */
async function folderOf(t: Test, page: Page): Promise<string> {
  const folder = t.testdir({});
  const prompts = [...page.text.matchAll(/file: \.\/([\w./-]+\.md)/g)].map(([, file]) => ({ file, text: 'Be brief.\n' }));
  for (const { file, text } of [...page.blocks, ...prompts]) {
    if (file === undefined) continue;
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  return folder;
}

function completed({ file, text }: Block): string {
  const missing = Object.entries(COMPLETION).filter(([section]) => !new RegExp(`^${section}:`, 'm').test(text));
  return file === undefined ? [text, ...missing.map(([, yaml]) => yaml), ''].join('\n') : text;
}

/** What is wrong with a configuration in a page's folder; empty where nothing is. */
async function mistakesIn(yaml: string, folder: string): Promise<string> {
  const file = join(folder, 'piece.yaml');
  await writeFile(file, yaml);
  try {
    await compose({ file, layout, env: VARIABLES, cwd: folder, logTo: new CapturedLog() });
    return '';
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

/** The commands of a console block, each with what it is said to print. */
function commandsOf({ text }: Block): readonly { readonly command: string; readonly output: string }[] {
  const pieces = text.split(/^\$ /m).slice(1);
  return pieces.map((piece) => ({ command: piece.split('\n', 1).join(), output: piece.slice(piece.indexOf('\n') + 1) }));
}

/** Runs a page's commands in order. A server that one of them starts runs to the page's end, where the page has it on port 8080. */
async function tryCommands(t: Test, page: Page, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const shell = new Shell(t, await folderOf(t, page), { PORT: '0', ...env });
  let server: Running | undefined;
  let url = 'http://127.0.0.1:8080';
  for (const block of page.in('console')) {
    for (const { command, output } of commandsOf(block)) {
      if (NOT_RUN.test(command)) continue;
      if (command.startsWith('npx plugboard start')) {
        server = shell.start(command);
        url = await addressOf(server);
        t.match(plain(server.stdout.replaceAll(url, 'http://127.0.0.1:8080')), looksLike(output), command);
      } else {
        const ended = await shell.run(command.replaceAll('http://127.0.0.1:8080', url));
        t.match(plain(ended.output), looksLike(output), command);
        t.equal(ended.code, Number(block.note), `the exit code of ${command}`);
      }
    }
  }
  if (server) t.equal(await server.stop(), 0, 'the server stops well');
}

/** `…` is anything. */
function looksLike(output: string): RegExp {
  const pieces = plain(output).split('…');
  return new RegExp(`^${pieces.map((piece) => piece.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[\\s\\S]*')}$`);
}

/** Without what differs from one day to the next: versions, blanks at the end, and that a start took its time. */
function plain(output: string): string {
  return output
    .replaceAll(/(?<![\d.])\d+\.\d+\.\d+(?![\d.])/g, 'VERSION')
    .replaceAll(/^still starting: .*\n/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .trim();
}

/** Where a server listens, once it has told all that it has to tell. */
async function addressOf(server: Running): Promise<string> {
  await server.prints(/^ {2}try .*\n/m);
  return server.prints(/^ {2}address +(.*)$/m);
}

function chat(
  url: string,
  body: object,
  said: readonly string[],
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ messages: said.map((content) => ({ role: 'user', content })), ...body }),
  });
}

/** A model server that writes lines of JSON, as writing-plugins.md describes it: it repeats what it is told, word by word. */
async function lineServer(t: Test): Promise<string> {
  const server = createServer(async (request, response) => {
    const { model, messages } = JSON.parse(await text(request));
    if (model !== 'small') return response.writeHead(404).end();
    for (const word of ['You ', 'said: ', messages.at(-1).text]) {
      response.write(`${JSON.stringify({ text: word })}\n`);
      await new Promise((resolve) => setImmediate(resolve)); // each goes out on its own
    }
    return response.end(`${JSON.stringify({ end: { read: 1, written: 3 } })}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/generate`;
}

function isPoint(value: unknown): value is ExtensionPoint<unknown> {
  return typeof value === 'object' && value !== null && 'discipline' in value && 'key' in value;
}

/** What `plugboard schema` prints, as far as the tables have to do with it. */
interface FileSchema {
  readonly properties: Readonly<Record<string, OptionsSchema>>;
  readonly definitions: Readonly<Record<string, OptionsSchema>>;
}

interface OptionsSchema {
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, OptionsSchema>>;
  readonly additionalProperties?: OptionsSchema;
  readonly required?: readonly string[];
}

/** Each option's default, as a table would say it. */
function defaults({ properties = {}, required = [] }: OptionsSchema = {}): Readonly<Record<string, string>> {
  const said = (name: string, value: unknown) => {
    if (value === undefined) return required.includes(name) ? 'required' : 'none';
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  return Object.fromEntries(Object.entries(properties).map(([name, option]) => [name, said(name, option.default)]));
}

/** Without the keys that every entry of the file may have. */
function withoutCommon({ use, optional, unless, ...own }: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return own;
}
