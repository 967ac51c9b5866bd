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
import { globSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CapturedLog } from '@plugboard/testing';
import type { Test } from 'tap';
import { ConfigError } from '../../kernel/src/host/base/errors.js';
import { compose } from '../../kernel/src/host/compose.js';
import { layout } from '../../kernel/src/layout.js';
import type { CodeBlock, Page } from '../support/page.js';
import { type Running, Shell } from '../support/shell.js';

export const root = join(import.meta.dirname, '../..');

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
  ADA_TOKEN: 'token-of-ada-0001',
};

/**
 * Overrides the accounts that a `.env` of the repository may name: no test talks to a real model.
 */
export const NO_ACCOUNTS = { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', GEMINI_API_KEY: '', OLLAMA_HOST: '' };

/** Commands that need a registry, or create the folder that the test has created. */
const NOT_RUN = /^(?:npm|mkdir) /;

/** Declares the tests that both long guides have. */
export function testGuide(t: Test, page: Page): void {
  t.test('every configuration is valid, except those marked as wrong', async (t) => {
    const folder = await folderOf(t, page);
    for (const block of page.in('yaml')) {
      const mistakes = await mistakesIn(completed(block), folder);
      if (block.note === 'wrong') t.not(mistakes, '', `line ${block.line}`);
      else t.equal(mistakes, '', `line ${block.line}`);
    }
  });

  t.test('every code block is in a language that is checked', async (t) => {
    for (const { language, file, text, line } of page.blocks) {
      t.ok(['yaml', 'ts', 'json', 'console', 'ini', 'nginx'].includes(language), `line ${line}: known language`);
      if (language === 'ts') t.ok(file?.endsWith('.ts'), `line ${line}: names its file`);
      if (language === 'json') t.doesNotThrow(() => JSON.parse(text), `line ${line}: valid JSON`);
    }
  });

  t.test('npm installs what the first configuration uses, and nothing unknown', async (t) => {
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

/** Writes all files of a page, and the prompts that its configurations name, to a new folder. */
export async function folderOf(t: Test, page: Page): Promise<string> {
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

/** The mistakes in a configuration of a page; empty if there are none. */
export async function mistakesIn(yaml: string, folder: string): Promise<string> {
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
export async function tryCommands(t: Test, page: Page, env: Readonly<Record<string, string>> = {}): Promise<void> {
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
export async function addressOf(server: Running): Promise<string> {
  await server.prints(/^ {2}try .*\n/m);
  return server.prints(/^ {2}address +(.*)$/m);
}

export function chat(
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
