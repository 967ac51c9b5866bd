import { existsSync, readdirSync, statSync } from 'node:fs';
import { rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { COST_OF_PREFIX } from '../src/server/cold-sessions.js';
import { distribution, Plugboard, plugin, run } from './plugboard.js';

const YAML = distribution['plugboard.yaml'] ?? '';
/** The file with one agent more. */
const CHANGED = YAML.replace('other:', 'third: { model: fast }, other:');

interface Program {
  readonly program: Plugboard;
  readonly file: string;
  /** The lines of the log about changes of the configuration. */
  readonly changes: () => unknown[];
}

async function started(t: Test, args: readonly string[] = []): Promise<Program> {
  const cwd = t.testdir({ ...distribution });
  const env = { TMPDIR: cwd };
  const program = new Plugboard(t, ['start', ...args], { cwd, env });
  await program.prints('curl ');
  const changes = () => program.log.filter(({ event }) => event === 'configuration_changed').map(({ changes }) => changes);
  return { program, file: join(cwd, 'plugboard.yaml'), changes };
}

t.test('rule 8: SIGHUP applies a changed file, and the log says what changed', async (t) => {
  const { program, file } = await started(t);
  await writeFile(file, CHANGED);
  program.kill('SIGHUP');
  t.match(await program.logs('SIGHUP: the changed configuration was applied'), {
    log: 'audit',
    event: 'configuration_changed',
    changes: ['added agents.third'],
    milliseconds: Number,
  });
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('rule 8: SIGHUP refuses a bad file, and the log has each mistake with its position', async (t) => {
  const { program, file } = await started(t);
  await writeFile(file, CHANGED.replace('model: fast }, other', 'model: fats }, other'));
  program.kill('SIGHUP');
  t.match(await program.logs('plugboard.yaml:3:'), {
    level: 'error',
    msg: /^plugboard\.yaml:3:\d+ agents\.third\.model: unknown model "fats", did you mean "fast"\? \(plugin @plugboard\/agent-runtime/,
  });
  t.match(await program.logs('SIGHUP: the changed configuration was refused; the previous one stays in effect'), {
    level: 'error',
  });
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('rule 8: start --watch reloads when the file changes, is replaced, or comes back', async (t) => {
  const { program, file, changes } = await started(t, ['--watch']);
  await program.logs('watching the files of the configuration');

  await writeFile(file, CHANGED.slice(0, 40));
  await writeFile(file, CHANGED);
  await program.logs('a file has changed: the changed configuration was applied');
  t.notOk(
    program.log.some(({ level }) => level === 'error'),
    'a file is not read while it is written',
  );

  await writeFile(`${file}.new`, YAML);
  await rename(`${file}.new`, file);
  await eventually(() => changes().length === 2);

  await rm(file);
  await program.logs('the file does not exist');
  await writeFile(file, CHANGED);
  await eventually(() => changes().length === 3);
  t.strictSame(changes(), [['added agents.third'], ['removed agents.third'], ['added agents.third']]);

  await writeFile(join(file, '..', '.env'), 'UNUSED=1\n');
  await program.logs('a file has changed: the configuration has not changed');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('rule 8: check --diff prints what a reload would change', async (t) => {
  const { program, file } = await started(t);
  const cwd = join(file, '..');
  const check = async () => {
    const { code, stdout, stderr } = await run(t, ['check', '--diff'], { cwd, env: { TMPDIR: cwd } });
    return {
      code,
      lines: (stdout + stderr)
        .trimEnd()
        .replace(/server \d+, configured [^:]+:\d+:\S+Z/, 'SERVER')
        .split('\n'),
    };
  };
  t.strictSame(await check(), { code: 0, lines: ['plugboard.yaml is valid', 'SERVER: a reload would change nothing'] });

  await writeFile(file, CHANGED.replace('fast: { use: ./model.js }', 'fast: { use: ./model.js, key: secret }'));
  t.strictSame(await check(), {
    code: 0,
    lines: [
      'plugboard.yaml is valid',
      'SERVER: a reload would change',
      '  added models.fast.key',
      '  added agents.third',
      COST_OF_PREFIX,
      '  agents.assistant: models.fast',
      '  agents.other: models.fast',
    ],
  });
  program.kill('SIGHUP');
  await program.logs('the changed configuration was applied');
  t.strictSame(await check(), { code: 0, lines: ['plugboard.yaml is valid', 'SERVER: a reload would change nothing'] });

  await writeFile(file, `${CHANGED}\nsessions: { use: memory, ttl: 1h }\n`);
  t.strictSame(await check(), {
    code: 78,
    lines: [
      'plugboard.yaml is valid for a new start, but not for a reload',
      'SERVER: a reload would be refused, because these cannot change while the server runs; restart it',
      '  changed sessions.ttl',
      COST_OF_PREFIX,
      '  agents.assistant: models.fast',
      '  agents.third: models.fast',
      '  agents.other: models.fast',
    ],
  });
  program.kill('SIGTERM');
  await program.exit();
  const { code, lines } = await check();
  t.equal(code, 0, 'the file is valid');
  t.match(lines, ['plugboard.yaml is valid', /^no running server of \S+ was found; run /]);
});

t.test('plugboard reload applies a changed file, and prints what changed', async (t) => {
  const { program, file, changes } = await started(t);
  const cwd = join(file, '..');
  const reload = async () => {
    const { code, stdout, stderr } = await run(t, ['reload'], { cwd, env: { TMPDIR: cwd } });
    return [code, (stdout + stderr).replace(/server \d+/, 'SERVER').trimEnd()];
  };
  t.strictSame(await reload(), [
    0,
    'SERVER: the configuration has not changed; plugins read files of their own again, such as tokens, but no code is loaded again',
  ]);
  await writeFile(file, CHANGED);
  t.strictSame(await reload(), [0, 'SERVER: the changed configuration was applied\n  added agents.third']);
  await eventually(() => changes().length > 0); // the log comes from another process
  t.strictSame(changes(), [['added agents.third']]);

  await writeFile(file, `${CHANGED}\nplugins: { extra: { use: ./extra.js } }\n`);
  await writeFile(join(cwd, 'extra.js'), plugin('extra', 'return { start() { throw new Error("no luck"); } };'));
  const refused = 'SERVER: the changed configuration was refused, and the previous one stays in effect';
  const extra = `plugboard.yaml:4:12 plugins.extra did not start: no luck (plugin extra 0.1.0, ${join(cwd, 'extra.js')})`;
  t.strictSame(await reload(), [78, `${refused}\n  ${extra}`]);
  const badOption =
    'throw new kernel.ConfigFault([{ path: ["a"], message: "is too old" }, { path: ["b"], message: "is gone" }]);';
  await writeFile(join(cwd, 'faulty.js'), plugin('faulty', `return { start() { ${badOption} } };`, '{ a: {}, b: {} }'));
  await writeFile(file, `${CHANGED}\nplugins: { extra: { use: ./faulty.js, a: 1, b: 2 } }\n`);
  const mistakes = ['4:42 plugins.extra.a: is too old', '4:48 plugins.extra.b: is gone'];
  t.strictSame(await reload(), [
    78,
    [refused, ...mistakes.map((one) => `  plugboard.yaml:${one} (plugin faulty 0.1.0)`)].join('\n'),
  ]);
  await writeFile(file, `${CHANGED}\nsessions: { use: memory, ttl: 1h }\n`);
  t.match(await reload(), [78, /a reload would be refused, because these cannot change .*\n {2}changed sessions\.ttl$/]);
  await writeFile(file, CHANGED.replace('other:', 'othr: { modle: fast }, other:'));
  t.match(await reload(), [78, /unknown option, did you mean "model"\?/]);

  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
  await writeFile(file, YAML);
  t.match(await reload(), [1, /^plugboard: no running server of plugboard\.yaml was found; run this on the machine/]);
});

t.test('check --diff names plugins that were updated since the server loaded them', async (t) => {
  const manifest = (version: string) => `{ "name": "words", "version": "${version}", "type": "module", "exports": "./index.js" }`;
  const cwd = t.testdir({
    ...distribution,
    'plugboard.yaml': `${YAML}\nplugins: { words: {} }\n`,
    node_modules: { words: { 'package.json': manifest('0.1.0'), 'index.js': plugin('words', 'return { start() {} };') } },
  });
  const program = new Plugboard(t, ['start'], { cwd, env: { TMPDIR: cwd } });
  await program.prints('curl ');
  await writeFile(join(cwd, 'node_modules/words/package.json'), manifest('0.2.0'));
  const { code, stdout } = await run(t, ['check', '--diff'], { cwd, env: { TMPDIR: cwd } });
  t.equal(code, 0);
  t.match(
    stdout,
    ': a reload would change nothing\n' +
      'a reload does not load these updates; restart the server to use them\n' +
      '  plugins.words: version 0.2.0 is installed, 0.1.0 runs\n',
  );
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('a reload names the plugins whose code has changed, and runs the old one', async (t) => {
  const cwd = t.testdir({
    ...distribution,
    'plugboard.yaml': `${YAML}\nplugins: { words: { use: ./words.js } }\n`,
    'words.js': plugin('words', 'return { start() {} };'),
  });
  const program = new Plugboard(t, ['start'], { cwd, env: { TMPDIR: cwd } });
  await program.prints('curl ');
  const { mtimeMs } = statSync(join(cwd, 'words.js'));
  await utimes(join(cwd, 'words.js'), new Date(), new Date(mtimeMs + 5_000));
  const { code, stdout } = await run(t, ['reload'], { cwd, env: { TMPDIR: cwd } });
  t.equal(code, 0);
  t.match(
    stdout,
    'but no code is loaded again\n' +
      'a reload does not load these updates; restart the server to use them\n' +
      '  plugins.words: its module has changed since the server loaded it\n',
  );
  t.match(await program.logs('plugins.words: its module has changed'), { level: 'warn' });
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('check --diff reports mistakes, whether a server runs or not', async (t) => {
  const cwd = t.testdir({ ...distribution, 'plugboard.yaml': YAML.replace('other:', 'othr: { modle: fast }, other:') });
  const { code, stdout, stderr } = await run(t, ['check', '--diff'], { cwd, env: { TMPDIR: cwd } });
  t.equal(code, 78);
  t.equal(stdout, '');
  t.match(stderr, 'agents.othr.modle: unknown option, did you mean "model"?');
});

t.test(
  'check --diff reads the file with the environment of the server',
  { skip: !existsSync('/proc/self/environ') },
  async (t) => {
    const yaml = YAML.replace('fast: { use: ./model.js }', `fast: { use: ./model.js, key: "\${MODEL_KEY}" }`);
    t.not(yaml, YAML);
    const cwd = t.testdir({ ...distribution, 'plugboard.yaml': yaml });
    const program = new Plugboard(t, ['start'], { cwd, env: { TMPDIR: cwd, MODEL_KEY: 'key-of-the-server' } });
    await program.prints('curl ');
    const { code, stdout, stderr } = await run(t, ['check', '--diff'], { cwd, env: { TMPDIR: cwd } });
    t.match({ code, stdout, stderr }, { code: 0, stdout: /: a reload would change nothing\n$/, stderr: '' });
    program.kill('SIGTERM');
    t.equal(await program.exit(), 0);
  },
);

t.test('check --diff finds a server by the runtime folder that systemd gave it', async (t) => {
  const cwd = t.testdir({ ...distribution, runtime: {} });
  const env = { TMPDIR: cwd, RUNTIME_DIRECTORY: join(cwd, 'runtime') };
  const program = new Plugboard(t, ['start'], { cwd, env });
  await program.prints('curl ');
  await eventually(() => readdirSync(env.RUNTIME_DIRECTORY).length === 1);
  t.match((await run(t, ['check', '--diff'], { cwd, env })).stdout, ': a reload would change nothing\n');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
  t.strictSame(readdirSync(env.RUNTIME_DIRECTORY), [], 'the record is removed');
});

t.test('SIGHUP before the server is composed reloads it after the start', async (t) => {
  const model = `process.kill(process.pid, 'SIGHUP');\n${distribution['model.js']}`;
  const program = new Plugboard(t, ['start'], { cwd: t.testdir({ ...distribution, 'model.js': model }) });
  await program.logs('SIGHUP: the configuration has not changed');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('SIGHUP while the server stops is answered in the log', async (t) => {
  const stopping = plugin(
    'stopping',
    `ctx.contribute(kernel.Interceptors, (turn, next) => next(turn));
     return { start() {}, async stop() { process.kill(process.pid, 'SIGHUP'); await new Promise((resolve) => process.once('SIGHUP', () => setTimeout(resolve, 50))); } };`,
  );
  const cwd = t.testdir({
    ...distribution,
    'plugboard.yaml': `${YAML}\nplugins: { stopping: { use: ./stopping.js } }\n`,
    'stopping.js': stopping,
  });
  const program = new Plugboard(t, ['start'], { cwd });
  await program.prints('curl ');
  program.kill('SIGTERM');
  await program.logs('SIGHUP: the configuration is not applied, because the server is stopping');
  t.equal(await program.exit(), 0);
});
