import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { plugin, run } from './plugboard.js';

/** What a pipe holds. Output that is longer waits for its reader. */
const PIPE = 65_536;

const keys = (kind: string) => Array.from({ length: 1_200 }, (_, index) => `${kind}-${index}-${'x'.repeat(50)}`);
const agents = keys('agent').map((name) => `  ${name}: { model: fast }`);
const tokens = keys('token').map((name) => `    - { name: ${name}, project: default, sha256: '${hash('sha256', name)}' }`);
const config = [
  'transports: { http: {} }',
  'plugins: { record: {} }',
  'auth:\n  bearer:\n    tokens:',
  ...tokens,
  'models: { fast: { use: ./model.js } }\nagents:',
  ...agents,
].join('\n');

const folder = t.testdir({
  'plugboard.yaml': config,
  'mistaken.yaml': config.replaceAll('model: fast', 'modle: fast'),
  // Every one of its commands, and of its connections, has a long name.
  'model.js': plugin(
    'model',
    `const long = 'x'.repeat(70_000);
    ctx.contribute(ModelConnectors, { model: 'm', contextWindow: 1000, input: ['text'], supportsParam: () => true,
      stream: async function* () {}, describe: () => [{ kind: 'detail', label: 'long', text: long }] });
    ctx.contribute(contracts.Commands, { summary: long, options: {}, run: async () => 0 }, 'shout');`,
  ),
});

/** A call of every command; how much it prints, and its exit code. */
const CALLS: readonly { readonly args: string; readonly code: number; readonly isLong?: false; readonly input?: string }[] = [
  { args: '--help', code: 0 },
  { args: 'shout --help', code: 0 },
  { args: 'start -c mistaken.yaml', code: 78 },
  { args: 'chat', code: 0, input: '/agent' },
  { args: 'check', code: 0 },
  { args: 'check -c mistaken.yaml', code: 78 },
  { args: 'plugins', code: 0 },
  { args: 'plugins --json', code: 0 },
  { args: 'schema', code: 0 },
  { args: 'token list', code: 0 },
  { args: 'reload', code: 1, isLong: false }, // no server runs
  { args: 'channels', code: 1, isLong: false },
  { args: 'pair', code: 1, isLong: false },
  { args: 'outbox', code: 1, isLong: false },
  { args: 'usage --url http://127.0.0.1:9', code: 1, isLong: false },
  { args: 'tools accept', code: 2, isLong: false }, // the file has no MCP server
  { args: 'replay missing.jsonl', code: 78, isLong: false },
  { args: 'rehearse', code: 78, isLong: false }, // nothing was recorded
  { args: 'init', code: 1, isLong: false }, // the folder has a plugboard.yaml
  { args: `create-plugin ${'x'.repeat(70_000)} --kind tool`, code: 2 },
];

const BIN = join(import.meta.dirname, '../bin/plugboard.js');

/** Runs a command before a reader. Returns its exit code, and what the reader printed. */
async function piped({ args, input = '' }: (typeof CALLS)[number], reader: string) {
  const { PATH, NODE_OPTIONS } = process.env;
  const script = `(echo '${input}' | "$0" ${BIN} ${args} 2>&1; echo " exit $?" >&3) | { ${reader}; }`;
  const child = spawn('sh', ['-c', script, process.execPath], {
    cwd: folder,
    env: { PATH, NODE_OPTIONS, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  let output = '';
  let code = '';
  child.stdio[1]?.on('data', (data) => {
    output += data;
  });
  child.stdio[3]?.on('data', (data) => {
    code += data;
  });
  await once(child, 'close');
  return { output, code: Number(/exit (\d+)/.exec(code)?.[1]) };
}

t.test('every command is in the table', async (t) => {
  const { stdout } = await run(t, ['--help'], { cwd: t.testdir({}) });
  const named = new Set(CALLS.map(({ args }) => args.split(' ')[0]));
  for (const [, name = ''] of stdout.matchAll(/^ {2}([a-z-]+) {2}/gm)) t.ok(named.has(name), name);
});

for (const call of CALLS) {
  const name = call.args.slice(0, 40).trim();
  t.test(`${name}: a slow reader gets everything, and one that has left breaks nothing`, async (t) => {
    const [slow, left] = await Promise.all([piped(call, 'sleep 1; cat'), piped(call, 'exec 0<&-; sleep 1')]);
    t.equal(slow.code, call.code);
    if (call.isLong !== false) t.ok(slow.output.length > PIPE, `${slow.output.length} bytes`);
    t.match(slow.output, /\n$/, 'the last line is whole');
    t.notMatch(slow.output, /EPIPE| {4}at /);
    t.equal(left.code, call.code, 'the same exit code');
  });
}

t.test('what a slow reader gets is what a file gets', async (t) => {
  const schema = await piped({ args: 'schema', code: 0 }, 'sleep 1; cat');
  const written = await piped({ args: 'schema > schema.json', code: 0 }, 'cat');
  t.equal(written.output, '');
  t.equal(schema.output, readFileSync(join(folder, 'schema.json'), 'utf8'));
});
