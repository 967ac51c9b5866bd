/**
 * Runs the snippets of the guides and of the root README. Mark a code block like this:
 *
 * - A file has its name in a comment in the first line (`# plugboard.yaml`, `// dice.ts`), or
 *   after the language (JSON has no comments). All files of a page are written to one folder.
 * - `yaml` without a name is part of a `plugboard.yaml`. Missing sections are added
 *   (`COMPLETION`), and the result must be valid.
 * - `yaml wrong` is a file with mistakes.
 * - `ts` is always a file. All are compiled together by the `tsc` command of the page.
 * - `console` has commands after `$`, run in order, and their output, where `…` is any text. A
 *   number after the word is the exit code. Commands of npm are not run.
 * - `json`, `ini` and `nginx` are examples for the reader. JSON is parsed.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import * as kernel from '@plugboard/kernel';
import { type DefinedPlugin, type ExtensionPoint, ModelConnectors } from '@plugboard/kernel';
import * as kernelCli from '@plugboard/kernel/cli';
import { CapturedLog, ModelServer, modelConnectorContract, modelRequest, testContext } from '@plugboard/kernel/testing';
import * as chatCompletions from '@plugboard/transport-chat-completions';
import * as http from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import { parse, stringify } from 'yaml';
import { ConfigError } from '../kernel/src/host/base/errors.js';
import { compose } from '../kernel/src/host/compose.js';
import { layout } from '../kernel/src/layout.js';
import { type CodeBlock, Page } from './support/page.js';
import { type Running, Shell } from './support/shell.js';

const root = join(import.meta.dirname, '..');
const operating = new Page(join(root, 'docs/guides/operating.md'));
const plugins = new Page(join(root, 'docs/guides/writing-plugins.md'));
const readme = new Page(join(root, 'README.md'));

/** Sections that are added to a part of a configuration that lacks them. */
const COMPLETION = {
  transports: 'transports: { http: {}, chat-completions: {} }',
  models: 'models: { fast: { use: demo }, local: { use: demo } }',
  tools: 'tools: { clock: {} }',
};

/** The variables of the pages' configurations. */
const VARIABLES = {
  OPENAI_API_KEY: 'key',
  OLLAMA_HOST: '127.0.0.1:11434',
  DESK_TOKEN: 'token',
  OPS_TOKEN: 'token-of-operations',
};

/**
 * Overrides the accounts that a `.env` of the repository may name: no test talks to a real model.
 */
const NO_ACCOUNTS = { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', GEMINI_API_KEY: '', OLLAMA_HOST: '' };

/** Commands that need a registry, or create the folder that the test has created. */
const NOT_RUN = /^(?:npm|mkdir) /;

// Starts some twenty programs, one after the other.
t.setTimeout(300_000);

for (const [name, page] of Object.entries({ 'operating.md': operating, 'writing-plugins.md': plugins })) {
  t.test(`${name}: every configuration is valid, except those marked as wrong`, async (t) => {
    const folder = await folderOf(t, page);
    for (const block of page.in('yaml')) {
      const mistakes = await mistakesIn(completed(block), folder);
      if (block.note === 'wrong') t.not(mistakes, '', `line ${block.line}`);
      else t.equal(mistakes, '', `line ${block.line}`);
    }
  });
}

for (const [name, page] of Object.entries({ 'operating.md': operating, 'writing-plugins.md': plugins })) {
  t.test(`${name}: every code block is in a language that is checked`, async (t) => {
    for (const { language, file, text, line } of page.blocks) {
      t.ok(['yaml', 'ts', 'json', 'console', 'ini', 'nginx'].includes(language), `line ${line}: known language`);
      if (language === 'ts') t.ok(file?.endsWith('.ts'), `line ${line}: names its file`);
      if (language === 'json') t.doesNotThrow(() => JSON.parse(text), `line ${line}: valid JSON`);
    }
  });

  t.test(`${name}: npm installs what the first configuration uses, and nothing unknown`, async (t) => {
    const manifests = globSync('{kernel,plugins/*}/package.json', { cwd: root });
    const ours = manifests.map((path) => JSON.parse(readFileSync(join(root, path), 'utf8')).name);
    const known = new Set([...ours, 'typescript', '@types/node', '@you/plugboard-tool-tickets']);
    const installs = page
      .in('console')
      .flatMap(commandsOf)
      .filter(({ command }) => /npm install /.test(command));
    const installed = installs.flatMap(({ command }) => command.split(' ').slice(2)).filter((word) => !word.startsWith('-'));
    t.strictSame(
      installed.filter((word) => !known.has(word)),
      [],
    );

    const { output } = await new Shell(t, await folderOf(t, page), NO_ACCOUNTS).run('npx plugboard plugins --json');
    const { plugins } = JSON.parse(output) as { readonly plugins: readonly { readonly name: string }[] };
    const used = plugins.map((plugin) => plugin.name).filter((plugin) => plugin.startsWith('@plugboard/'));
    t.ok(used.length > 4);
    t.strictSame(
      used.filter((plugin) => !installed.includes(plugin)),
      [],
    );
  });
}

t.test('operating.md: every command prints what the page shows', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  await tryCommands(t, operating, { OPENAI_BASE_URL: models.url });
  t.match(models.requests[0]?.headers, { authorization: /^Bearer sk-/ }, 'the key comes from .env');
});

t.test('operating.md: the tables list all options with their defaults', async (t) => {
  const { output } = await new Shell(t, await folderOf(t, operating)).run('npx plugboard schema');
  const { properties, definitions } = JSON.parse(output) as FileSchema;
  const shown = (heading: string) => Object.fromEntries(operating.table(heading).map(([option = '', value]) => [option, value]));
  t.strictSame(shown('key'), defaults(properties.agents?.additionalProperties));
  t.strictSame(shown('option under limits'), defaults(properties.limits));
  t.strictSame(shown('option of http'), withoutCommon(defaults(definitions['transports.@plugboard.transport-http'])));
  t.strictSame(shown('option of every tool entry'), withoutCommon(defaults(properties.tools?.properties?.clock)));
  t.strictSame(Object.keys({ $schema: '', ...shown('section') }).toSorted(), Object.keys(properties).toSorted());
});

t.test('operating.md: the log has the fields and messages of the tables', async (t) => {
  const sources = globSync('{kernel,plugins/*}/src/**/*.ts', { cwd: root }).map((path) => readFileSync(join(root, path), 'utf8'));
  for (const [message = ''] of operating.table('msg'))
    t.ok(
      sources.some((source) => source.includes(message)),
      message,
    );

  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const shell = new Shell(t, await folderOf(t, operating), { PORT: '0', OPENAI_BASE_URL: models.url });
  const server = shell.start('npx plugboard start');
  const url = await addressOf(server);
  const headers = { 'x-request-id': 'mine' };
  t.equal((await chat(url, { model: 'assistant', session_id: 'a', stream: true }, ['Hi'], headers)).status, 200);
  t.equal((await chat(url, { model: '' }, ['Hi'])).status, 400);
  t.equal((await fetch(`${url}/v1/chat/completions`)).status, 405);
  t.equal((await fetch(`${url}/nowhere`)).status, 404); // within a second of another refusal: no line
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
  const shown = operating.table('field').flatMap(([fields = '']) => fields.split(', '));
  const fields = new Set(requests.flatMap((line) => Object.keys(line)));
  const ofCredentials = ['token_id', 'token_name', 'refused', 'scope', 'left_out']; // an open server has none
  // The row of `route` mentions `path`.
  t.strictSame([...fields, ...ofCredentials].toSorted(), [...everyLine, 'plugin', 'entry', ...shown, 'path'].toSorted());
});

t.test('writing-plugins.md: the code compiles, its tests pass, and every command prints what the page shows', async (t) => {
  await tryCommands(t, plugins);
});

t.test('writing-plugins.md: the plugins work in a running server', async (t) => {
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
    error: { message: 'This conversation has more than 2 messages; start a new one.', param: 'messages' },
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

t.test('writing-plugins.md: the model connector passes its contract suite', async (t) => {
  const module = pathToFileURL(join(await folderOf(t, plugins), 'line-model.ts')).href;
  const { default: plugin } = (await import(module)) as { default: DefinedPlugin };
  const url = await lineServer(t);
  const open = (model: string) => testContext(plugin, { config: { url, model } }).contributed(ModelConnectors);
  modelConnectorContract(t.test, { open: () => open('small'), text: modelRequest('Hello') });
  const refused = open('nobody').stream(modelRequest('Hello'), new AbortController().signal);
  await t.rejects(refused[Symbol.asyncIterator]().next(), { message: 'it answered with status 404.', retryable: false });
});

t.test('writing-plugins.md: the table lists all extension points', async (t) => {
  const homes = {
    '@plugboard/kernel': kernel,
    '@plugboard/kernel/cli': kernelCli,
    '@plugboard/transport-http': http,
    '@plugboard/transport-chat-completions': chatCompletions,
  };
  const points = Object.entries(homes).flatMap(([home, exported]) =>
    Object.entries(exported).flatMap(([name, value]) => (isPoint(value) ? [`${name} ${value.id} ${home}`] : [])),
  );
  const shown = plugins.table('point').map((cells) => cells.slice(0, 3).join(' '));
  t.strictSame(shown.toSorted(), points.toSorted());
});

t.test('README.md: the examples work with the distribution at the root', async (t) => {
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

t.test('README.md: lists all packages, commands and scripts', async (t) => {
  const linked = new Set(readme.links);
  for (const path of globSync('{plugins/*,plugin-template}/README.md', { cwd: root })) t.ok(linked.has(path), path);
  const { output } = await new Shell(t, root).run('npx plugboard --help');
  const first = (pattern: RegExp, text: string) => [...text.matchAll(pattern)].map(([, word]) => word).toSorted();
  t.strictSame(first(/^plugboard ([\w-]+)/gm, readme.text), first(/^ {2}([\w-]+) {2,}/gm, output));
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [, name = ''] of readme.text.matchAll(/npm (?:run )?(start|test|lint|format|bench)\b/g)) t.ok(scripts[name], name);
});

t.test('README.md: the WebSocket example shows the events of an agent at work', async (t) => {
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

t.test('README.md: every configuration is valid in the sections of the file at the root', async (t) => {
  const folder = t.testdir({});
  for (const block of readme.in('yaml')) t.equal(await mistakesIn(inRootFile(block), folder), '', `line ${block.line}`);
});

t.test('README.md: the commands that create and revoke a token work', async (t) => {
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

t.test('every link in the documentation leads to an existing file and heading', async (t) => {
  const paths = globSync(['*.md', 'docs/**/*.md', '{kernel,plugins/*,plugin-template,test/*}/README.md'], { cwd: root });
  t.ok(paths.length > 20);
  for (const path of paths) {
    for (const link of new Page(join(root, path)).links) {
      if (/^https?:/.test(link)) continue;
      const [file = '', anchor] = link.split('#');
      const target = join(root, file === '' ? path : join(dirname(path), file));
      t.ok(existsSync(target), `${path}: ${link}`);
      if (anchor !== undefined) t.ok(new Page(target).anchors.includes(anchor), `${path}: ${link}`);
    }
  }
});

t.test('CONTRIBUTING.md: every npm script exists', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { text } = new Page(join(root, 'CONTRIBUTING.md'));
  const named = [...text.matchAll(/npm (?:run ([\w:]+)|(test|start))/g)].map(([, script, short]) => script ?? short ?? '');
  t.ok(named.length > 5);
  for (const name of named) t.ok(scripts[name], name);
});

t.test('the librarian of the root distribution finds the guides, and each fits into one tool result', async (t) => {
  const { output } = await new Shell(t, root, NO_ACCOUNTS).run(`echo 'List the directory "."' | npx plugboard chat librarian`);
  for (const file of ['operating.md', 'writing-plugins.md']) t.match(output, `[FILE] ${file}`);
  for (const { text } of [operating, plugins])
    t.ok(Buffer.byteLength(text) < 64 * 1024, 'is below the default resultLimit of 64kb');
});

/** Writes all files of a page, and the prompts that its configurations name, to a new folder. */
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

function completed({ file, text }: CodeBlock): string {
  const missing = Object.entries(COMPLETION).filter(([section]) => !new RegExp(`^${section}:`, 'm').test(text));
  return file === undefined ? [text, ...missing.map(([, yaml]) => yaml), ''].join('\n') : text;
}

/** The plugboard.yaml at the root with the entries of an example in its sections. */
function inRootFile({ text }: CodeBlock): string {
  const file: Record<string, object> = parse(readFileSync(join(root, 'plugboard.yaml'), 'utf8'));
  for (const [section, entries] of Object.entries<object>(parse(text))) file[section] = { ...file[section], ...entries };
  return stringify(file);
}

/** The mistakes in a configuration of a page; empty if there are none. */
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

/** The commands of a console block, each with the output that the page shows. */
function commandsOf({ text }: CodeBlock): readonly { readonly command: string; readonly output: string }[] {
  const pieces = text.split(/^\$ /m).slice(1);
  return pieces.map((piece) => ({ command: piece.split('\n', 1).join(), output: piece.slice(piece.indexOf('\n') + 1) }));
}

/**
 * Runs a page's commands in order. A server that one of them starts runs until the end of the page;
 * the page shows it on port 8080.
 */
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
  if (server) t.equal(await server.stop(), 0, 'the server stops with exit code 0');
}

/** `…` matches any text. */
function looksLike(output: string): RegExp {
  const pieces = plain(output).split('…');
  return new RegExp(`^${pieces.map((piece) => piece.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[\\s\\S]*')}$`);
}

/** Removes what differs between runs: versions, trailing spaces, progress of a slow start. */
function plain(output: string): string {
  return output
    .replaceAll(/(?<![\d.])\d+\.\d+\.\d+(?![\d.])/g, 'VERSION')
    .replaceAll(/^still starting: .*\n/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .trim();
}

/** The address of a server, once it has printed its whole banner. */
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

/**
 * The model server of writing-plugins.md, which answers with lines of JSON. It repeats the last
 * message.
 */
async function lineServer(t: Test): Promise<string> {
  const server = createServer(async (request, response) => {
    const { model, messages } = JSON.parse(await text(request));
    if (model !== 'small') return response.writeHead(404).end();
    for (const word of ['You ', 'said: ', messages.at(-1).text]) {
      response.write(`${JSON.stringify({ text: word })}\n`);
      await setImmediate(); // one write per line
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

/** The part of `plugboard schema` that the tables show. */
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

/** The defaults of options, as a table shows them. */
function defaults({ properties = {}, required = [] }: OptionsSchema = {}): Readonly<Record<string, string>> {
  const said = (name: string, value: unknown) => {
    if (value === undefined) return required.includes(name) ? 'required' : 'none';
    return typeof value === 'string' ? value : JSON.stringify(value);
  };
  return Object.fromEntries(Object.entries(properties).map(([name, option]) => [name, said(name, option.default)]));
}

/** Leaves out the keys that every entry may have. */
function withoutCommon({ use, optional, unless, ...own }: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return own;
}
