import { mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import t from 'tap';
import { entry, FOLDER, fixture } from './entry.js';
import { witness } from './witness.js';

/** A program that does what the script says. */
const program = (script: string) => ({ command: process.execPath, args: ['-e', script] });

t.test('start lists the tools of all pages in the order of the server', async (t) => {
  const files = entry(t, fixture('--page', '4'));
  t.strictSame(files.names(), [], 'nothing is known before the start');
  await files.start();
  t.strictSame(files.names().slice(0, 6), ['echo', 'surroundings', 'meta', 'answer', 'answerError', 'refuse']);
  t.equal(files.names().at(-1), 'crash');
  t.equal(files.source.single, false);
  t.match(files.lines.at(-1), {
    level: 'info',
    server: 'fixture 1.2.3',
    tools: files.names().length,
    msg: 'the MCP server is ready',
  });
});

t.test('declares a tool like the server does, with the effect of its annotations', async (t) => {
  const files = entry(t, fixture());
  await files.start();
  const { run: _, ...echo } = files.tool('echo');
  t.strictSame(echo, {
    name: 'echo',
    description: 'Says the same',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    effect: 'read',
  });
  t.match(files.tool('surroundings'), { effect: 'idempotent', description: '' });
  t.match(files.tool('crash'), { effect: 'write' });
});

t.test('skips a tool that is not valid, with a warning that names it and the reason', async (t) => {
  const files = entry(t, fixture('--misshapen'));
  await files.start();
  t.strictSame(files.names(), ['echo']);
  t.equal(files.tool('echo').description, '');
  const left = files.lines.filter((line) => line.level === 'warn');
  t.strictSame(
    left.map((line) => line.tool),
    ['', '', 'schemaless', 'listSchema', 'task', 'echo'],
  );
  t.match(left[5], { msg: 'a tool of the MCP server was skipped: the list has an earlier tool of this name' });
  t.match(left[3], { msg: 'a tool of the MCP server was skipped: its inputSchema is not the schema of an object' });
});

t.test('a server without tools starts, with a warning', async (t) => {
  const files = entry(t, fixture('--toolless'));
  await files.start();
  t.strictSame(files.names(), []);
  t.ok(files.lines.some((line) => line.level === 'warn' && line.msg === 'the MCP server offers no tools'));
});

t.test('runs the program in the folder of the configuration file, or in `cwd` relative to it', async (t) => {
  const here = entry(t, fixture());
  await here.start();
  t.equal(JSON.parse(await here.text('surroundings')).cwd, FOLDER);

  const below = entry(t, { command: process.execPath, args: ['server.mjs'], cwd: './fixtures' });
  await below.start();
  t.equal(JSON.parse(await below.text('surroundings')).cwd, join(FOLDER, 'fixtures'));
});

t.test('a command that begins with a dot is relative to the configuration file, whatever `cwd` is', async (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-')));
  symlinkSync(process.execPath, join(folder, 'node'));
  const command = join(relative(FOLDER, folder), 'node');
  t.match(command, /^\.\./);
  const files = entry(t, { command, args: [join(FOLDER, 'fixtures/server.mjs')], cwd: folder });
  await files.start();
  t.equal(JSON.parse(await files.text('surroundings')).cwd, folder);
});

t.test('passes on basic variables and those of `env`, and no others', async (t) => {
  process.env.SOME_API_KEY = 'not for children';
  t.teardown(() => delete process.env.SOME_API_KEY);
  const files = entry(t, { ...fixture(), env: { GREETING: 'hello', HOME: '/elsewhere' } });
  await files.start();
  const { env } = JSON.parse(await files.text('surroundings'));
  t.match(env, { PATH: process.env.PATH, HOME: '/elsewhere', GREETING: 'hello' });
  const known = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'GREETING'];
  t.strictSame(
    Object.keys(env).filter((name) => !known.includes(name) && !/^(_TAPJS_|NODE_OPTIONS$)/.test(name)), // these come from the test runner
    [],
  );
});

t.test('a failed start names the program and the cure:', async (t) => {
  const fails = async (options: Parameters<typeof entry>[1], message: string | RegExp) => {
    const files = entry(t, options);
    await t.rejects(files.start(), { name: 'McpServerError', code: 'mcp_not_started', message });
  };
  const file = join(mkdtempSync(join(tmpdir(), 'mcp-')), 'script');
  writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o644 });

  await t.test('no such command', () =>
    fails({ command: 'no-such-program' }, '"no-such-program" was not found on the PATH: install it, or write its path'),
  );
  await t.test('no such file', () => fails({ command: './no-such-file' }, `"${FOLDER}/no-such-file" does not exist`));
  await t.test('arguments in the command', () =>
    fails(
      { command: 'npx -y some-server' },
      /"npx -y some-server" was not found: put the program in `command` and its arguments in `args`/,
    ),
  );
  await t.test('a file that is not executable', () => fails({ command: file }, /is not executable: change its mode/));
  await t.test('a missing interpreter', async () => {
    const { chmodSync } = await import('node:fs');
    chmodSync(file, 0o755);
    await fails({ command: file }, /names an interpreter in its first line that was not found/);
  });
  await t.test('no such folder', () =>
    fails(
      { ...fixture(), cwd: './nowhere' },
      `"${process.execPath}" cannot run in ${FOLDER}/nowhere, which is not a folder: correct \`cwd\``,
    ),
  );
  await t.test('any other error of the system, with secrets redacted', async (t) => {
    const files = entry(t, { ...fixture(), env: { KEY: 'half a secret\0' } });
    const error = await files.start().catch((error: Error) => error);
    t.match(error, { message: /could not be started: .*null bytes/s });
    t.notMatch(String(error), /secret/);
  });
  await t.test('an early exit, with the code and the last output', () =>
    fails(
      program('console.log("usage: …"); console.error("\\x1b[31mno port\\x1b[0m"); process.exitCode = 4'),
      /^".*node" exited with code 4; its last output:\n {2}(usage: …\n {2}no port|no port\n {2}usage: …)$/,
    ),
  );
  await t.test('an end by a signal', () => fails(program('process.kill(process.pid, "SIGKILL")'), /was ended by SIGKILL$/));
  await t.test('a program that prints other text endlessly', () =>
    fails(
      program('process.stdin.resume(); for (let i = 0; i < 2000; i++) console.log("chatter", i)'),
      /prints text that is not an MCP message on its standard output; its last output:\n {2}chatter \d+/,
    ),
  );
  await t.test('an echo', () => fails({ command: 'cat' }, '"cat" violated the MCP protocol: Method not found'));
  await t.test('an unknown version of the protocol', () =>
    fails(fixture('--version', '1999-12-31'), /violated the MCP protocol: .*version is not supported: 1999-12-31/),
  );
  await t.test('an answer that does not match the schema', () =>
    fails(
      program(`process.stdin.once('data', () => console.log('{"jsonrpc":"2.0","id":0,"result":{}}')); process.stdin.resume()`),
      /violated the MCP protocol: its answer does not match the schema of MCP/,
    ),
  );
});

t.test('a start without an answer fails after ten seconds with the last output; stop leaves no process behind', async (t) => {
  const watch = await witness(t);
  const files = entry(t, fixture('--witness', String(watch.port), '--mute', FOLDER));
  const started = files.start();
  const { gone } = await watch.next();
  await files.logged(/I say nothing/);
  files.clock.advance(10_000);
  await t.rejects(started, {
    code: 'mcp_not_started',
    message: /^".*" runs, but did not answer in time: .*; its last output:\n {2}I say nothing$/,
  });
  await files.stop();
  await gone;
});

t.test('a start ends when its signal is aborted', async (t) => {
  const watch = await witness(t);
  const files = entry(t, fixture('--witness', String(watch.port), '--mute', FOLDER));
  const kernel = new AbortController();
  const started = files.start(kernel.signal);
  const { gone } = await watch.next();
  kernel.abort(new Error('the server stops'));
  await t.rejects(started, { code: 'mcp_not_started' });
  await files.stop();
  await gone;
});

t.test('logs the output of a program at debug level; secrets are redacted there and in errors', async (t) => {
  const script =
    'console.error("key is", process.env.KEY, "and the last line of", process.env.PEM.split("\\n")[1]); process.exitCode = 1';
  const files = entry(t, { ...program(script), env: { KEY: 'open sesame', PEM: 'first line\nsecond line', DEBUG: 'on' } });
  const line = 'key is [redacted] and the last line of [redacted]';
  await t.rejects(files.start(), { message: new RegExp(`\\n {2}${line.replaceAll(/[[\]]/g, '\\$&')}$`) });
  t.match(files.lines[0], { level: 'debug', line, from: 'stderr' });
  t.notMatch(JSON.stringify(files.lines), /sesame/);
});
