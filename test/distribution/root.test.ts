import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { parse } from 'yaml';
import { Plugboard } from '../../plugins/cli/test/plugboard.js';
import { ANTHROPIC_KEY, ANTHROPIC_MODEL, anthropic } from '../../plugins/model-ai-sdk/test/servers/anthropic.js';
import { NativeServer } from '../../plugins/model-ai-sdk/test/servers/native-server.js';
import { readEventStream } from '../support/server-sent-events.js';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'plugins/cli/bin/plugboard.js');

/**
 * A free port, a folder for what is kept, and none of the keys that a real model would be asked
 * with, whatever a `.env` file says.
 */
const env = {
  PATH: process.env.PATH ?? '',
  NODE_OPTIONS: process.env.NODE_OPTIONS ?? '',
  PORT: '0',
  DATA_DIR: t.testdir(),
  OPENAI_API_KEY: '',
  ANTHROPIC_API_KEY: '',
  GEMINI_API_KEY: '',
  OLLAMA_HOST: '',
};

const server = new Plugboard(t, ['start'], { cwd: ROOT, env });
await server.prints('\n  try ');
const address = /^ {2}address +(\S+)$/m.exec(server.stdout)?.[1] ?? '';

/** Asks the running server, as curl would. */
function ask(body: object): Promise<Response> {
  return fetch(`${address}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function textOf(response: Response): Promise<string> {
  const { choices } = (await response.json()) as { choices: [{ message: { content: string } }] };
  return choices[0].message.content;
}

/** Talks to an agent in the terminal: each line is a turn. */
async function chat(args: readonly string[], ...lines: readonly string[]): Promise<string> {
  const talking = promisify(execFile)(process.execPath, [BIN, 'chat', ...args], { cwd: ROOT, env });
  talking.child.stdin?.end(lines.map((line) => `${line}\n`).join(''));
  return (await talking).stdout;
}

t.test('the distribution at the root runs without an API key and prints its agents and models', async (t) => {
  t.match(
    server.stdout,
    /^plugboard \d+\.\d+\.\d+\n {2}agents +assistant, librarian\n {2}models +demo\n {2}sessions +sqlite\n {2}process +\d+\n {2}access +open\n {2}warning .*\n(still starting: .*\n)? {2}address +http:\/\/127\.0\.0\.1:\d+\n/,
  );
  t.match(await (await fetch(`${address}/health`)).json(), { status: 'ok', ready: true });
  const { data } = (await (await fetch(`${address}/v1/models`)).json()) as { data: { id: string }[] };
  t.strictSame(
    data.map(({ id }) => id),
    ['assistant', 'librarian', 'demo'],
  );
});

t.test('the assistant calls the clock', async (t) => {
  const body = { model: 'assistant', messages: [{ role: 'user', content: 'What time is it in Tokyo?' }] };
  t.match(await textOf(await ask(body)), /I called clock. It returned:\n\n.*Asia\/Tokyo.*\n\nI am only a stand-in/s);
  const streamed = readEventStream(await (await ask({ ...body, stream: true })).text());
  t.match(streamed.text, /I called clock. It returned:\n\n.*Asia\/Tokyo/);
  t.ok(streamed.chunks.length > 10, 'word by word');
  t.ok(streamed.done);
});

t.test('the librarian reads the guides', async (t) => {
  const [guide = ''] = globSync('*.md', { cwd: join(ROOT, 'docs/guides') });
  const [title = ''] = readFileSync(join(ROOT, 'docs/guides', guide), 'utf8').split('\n');
  t.match(title, /^# ./);
  const body = { model: 'librarian', messages: [{ role: 'user', content: `Read the file ${guide}` }] };
  t.match(await textOf(await ask(body)), title);
});

t.test('`plugboard chat` runs one turn per line in one conversation and shows tool calls', async (t) => {
  const said = await chat([], 'Hello there', 'What time is it in Rome?', 'Thank you');
  t.match(said, 'You said: "Hello there"');
  t.match(said, /\n→ clock \{"timeZone":"Europe\/Rome"\}\n← .*Europe\/Rome/);
  t.match(said, /You said: "Thank you"\nBefore that you said: "What time is it in Rome\?"/);
});

t.test('`plugboard chat --url` does the same through a running server', async (t) => {
  const said = await chat(['--url', address, 'assistant'], 'Hello there', 'Thank you');
  t.match(said, 'You said: "Hello there"\nI received no other message of this conversation.');
  t.match(said, 'You said: "Thank you"\nBefore that you said: "Hello there"');
  const unreachable = chat(['--url', 'http://127.0.0.1:1', 'assistant'], 'Hello there');
  await t.rejects(unreachable, { code: 1, stderr: /cannot reach http:\/\/127\.0\.0\.1:1\/v1/ });
});

t.test('Anthropic and Gemini are used through the compatible endpoints where their packages are not installed', async (t) => {
  const yaml = readFileSync(join(ROOT, 'plugboard.yaml'), 'utf8');
  const keys = { ANTHROPIC_API_KEY: 'sk-ant-of-this-test', GEMINI_API_KEY: 'AIza-of-this-test' };
  const checked = async (files: Parameters<typeof t.testdir>[0]) => {
    const program = new Plugboard(t, ['check'], { cwd: t.testdir(files), env: { ...env, ...keys } });
    return { code: await program.exit(), stdout: program.stdout, stderr: program.stderr };
  };
  const missing = await checked({ 'plugboard.yaml': yaml.replaceAll('"@ai-sdk/', '"@ai-sdk/not-') });
  t.match(missing, { code: 0, stdout: /\n +models +anthropic-compatible, gemini-compatible\n/ });
  const cause = 'the package @ai-sdk/not-anthropic is not installed; check the name, then run: npm install @ai-sdk/not-anthropic';
  t.match(missing.stdout, `models.anthropic: ${cause}\n`);

  const older = '{ "name": "@ai-sdk/google", "version": "3.0.1", "dependencies": { "@ai-sdk/provider": "3.0.0" } }';
  t.match(await checked({ 'plugboard.yaml': yaml, node_modules: { '@ai-sdk': { google: { 'package.json': older } } } }), {
    code: 78,
    stderr: /models\.gemini\.provider: @ai-sdk\/google 3\.0\.1 has the specification v3 of the AI SDK, and this plugin needs v4/,
  });
});

t.test('with the key of Anthropic alone, an agent thinks, calls a tool, and reads from the cache', async (t) => {
  const claude = await NativeServer.start(anthropic);
  t.teardown(() => claude.close());
  const yaml = readFileSync(join(ROOT, 'plugboard.yaml'), 'utf8')
    .replace('reasoningEffort: low', `reasoningEffort: low\n    baseUrl: ${claude.url}`)
    .replace(', docs/guides]', `, ${JSON.stringify(join(ROOT, 'docs/guides'))}]`)
    .replace('[node_modules/', `[${join(ROOT, 'node_modules')}/`);
  const cwd = t.testdir({ 'plugboard.yaml': yaml });
  const keys = { ANTHROPIC_API_KEY: ANTHROPIC_KEY, ANTHROPIC_MODEL, DATA_DIR: join(cwd, 'data') };
  const program = new Plugboard(t, ['start'], { cwd, env: { ...env, ...keys } });
  await program.prints('\n  try ');
  const [, url = ''] = /^ {2}address +(\S+)$/m.exec(program.stdout) ?? [];
  t.match(program.stdout, /\n +models +anthropic\n/);
  claude.enqueue(
    { thinking: ['Tokyo.'], calls: [{ name: 'clock', input: { timeZone: 'Asia/Tokyo' } }] },
    { text: ['It is noon.'], usage: [100, 80, 20, 5] },
  );
  const body = JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'What time is it in Tokyo?' }] });
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  t.match(await reply.json(), {
    choices: [{ message: { content: 'It is noon.' } }],
    usage: { prompt_tokens_details: { cached_tokens: 80 } },
  });
  const cache_control = { type: 'ephemeral' };
  t.match(claude.requests.at(-1)?.body, {
    thinking: { type: 'adaptive' },
    output_config: { effort: 'low' },
    system: [{ cache_control }],
    messages: [
      { role: 'user', content: [{ cache_control }] },
      { role: 'assistant', content: [{ type: 'thinking', thinking: 'Tokyo.' }, { type: 'tool_use' }] },
      { role: 'user', content: [{ type: 'tool_result', cache_control }] },
    ],
  });
  t.strictSame(claude.refusals, []);
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('`plugboard init` writes the same models, and the packages that they need', async (t) => {
  const template = join(ROOT, 'plugins/cli/templates/distribution');
  const models = (folder: string) => parse(readFileSync(join(folder, 'plugboard.yaml'), 'utf8')).models;
  t.strictSame(models(template), models(ROOT));
  const packages = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).optionalDependencies;
  const versions = Object.entries<string>(packages(ROOT)).map(([name, version]) => [name, `^${version}`]);
  t.strictSame(packages(template), Object.fromEntries(versions));
});

t.test('a mistake in its file stops the start with exit code 78 and is reported with line and column', async (t) => {
  const yaml = readFileSync(join(ROOT, 'plugboard.yaml'), 'utf8').replace('model: "${OPENAI_MODEL', 'modle: "${OPENAI_MODEL');
  const line = yaml.split('\n').findIndex((text) => text.includes('modle:')) + 1;
  const cwd = t.testdir({ 'plugboard.yaml': yaml });
  const program = new Plugboard(t, ['start'], { cwd, env: { ...env, OPENAI_API_KEY: 'sk-of-this-test' } });
  t.equal(await program.exit(), 78);
  t.match(program.stderr, new RegExp(`^plugboard\\.yaml:${line}:\\d+ models\\.openai\\.modle: .*did you mean "model"\\?`, 'm'));
  t.notMatch(program.stderr, 'sk-of-this-test');
  t.equal(program.stdout, '');
});

t.test('SIGTERM stops it with exit code 0', async (t) => {
  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
  await t.rejects(fetch(`${address}/health`));
});
