import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { distribution, distributionWith, Plugboard, run } from './plugboard.js';

/** A plugin with a command, and with a family of commands. */
const GREETING = `
  const { Commands, CommandError, UsageError } = contracts;
  const greet = {
    summary: 'Greets somebody',
    positionals: ['NAME', '[OTHER]'],
    options: { from: { value: 'WHO', required: true, description: 'who greets' }, loud: { short: 'l', description: 'with a mark' } },
    async run(args, terminal) {
      const [name, other] = args.positionals;
      if (name === 'nobody') throw new CommandError('nobody is not there');
      if (name === 'all') throw new UsageError('greet one by one');
      if (name === 'bug') throw new Error('a defect');
      for await (const text of terminal.input) terminal.note('heard ' + text);
      terminal.print(ctx.entry + ': ' + args.text('from') + ' greets ' + [name, other].join(' ') + (args.has('loud') ? '!' : ''));
      return 3;
    },
  };
  const wave = {
    summary: 'Waves',
    options: {},
    async run(args, terminal) {
      await new Promise((resolve) => ctx.clock.after(1, resolve)); // nothing else keeps the process alive
      terminal.print('waved');
      return 0;
    },
  };
  ctx.contribute(Commands, greet, 'greet');
  ctx.contribute(Commands, { summary: 'Speaks with hands', actions: { wave, greet, nod: wave } }, 'gesture');
`;

t.test('a command of a plugin is available if the file uses the plugin', async (t) => {
  const cwd = t.testdir(distributionWith(GREETING));
  const greeted = await run(t, ['greet', '--from', 'me', 'you', '-l'], { cwd, input: 'a cough' });
  t.strictSame(greeted, { code: 3, stdout: 'plugins.extra: me greets you !\n', stderr: 'heard a cough\n' });
  t.match(await run(t, ['gesture', 'wave'], { cwd }), { code: 0, stdout: 'waved\n', stderr: '' });
  t.match(await run(t, ['gesture', 'wave', '-c', `${cwd}/plugboard.yaml`], { cwd: t.testdirName }), {
    code: 0,
    stdout: 'waved\n',
  });
  const { stdout } = await run(t, ['--help'], { cwd });
  t.match(stdout, /\n {2}create-plugin {2}Creates .*\n {2}greet {10}Greets somebody\n {2}gesture {8}Speaks with hands\n/);
});

t.test('a command of a plugin has its own help', async (t) => {
  const cwd = t.testdir(distributionWith(GREETING));
  const greet = await run(t, ['greet', '--help'], { cwd });
  t.match(greet, {
    code: 0,
    stdout: 'Usage: plugboard greet NAME [OTHER] --from WHO [-l] [-c FILE] [--entry ENTRY]\n\nGreets somebody.\n',
  });
  for (const args of [
    ['gesture', '--help'],
    ['gesture', '-c', 'plugboard.yaml', '-h'],
  ]) {
    const { code, stdout } = await run(t, args, { cwd });
    t.equal(code, 0);
    t.match(
      stdout,
      /^Usage: plugboard gesture ACTION \[OPTIONS\]\n\nSpeaks with hands\.\n\n {2}wave {3}Waves\n {2}greet {2}Greets somebody\n/,
    );
  }
  t.match((await run(t, ['gesture', 'wave', '--help'], { cwd })).stdout, 'Usage: plugboard gesture wave [-c FILE]');
});

t.test('unknown arguments of a command exit with 2 and a message', async (t) => {
  const cwd = t.testdir(distributionWith(GREETING));
  for (const [args, message] of [
    [['greet'], 'plugboard: plugboard greet needs NAME and --from WHO\nRun plugboard greet --help for its arguments.\n'],
    [
      ['gesture', 'greet', 'you'],
      'plugboard: plugboard gesture greet needs --from WHO\nRun plugboard gesture greet --help for its arguments.\n',
    ],
    [['greet', 'a', 'b', 'c', '--from', 'me'], 'plugboard: unexpected argument "c"\n'],
    [['gesture'], 'plugboard: plugboard gesture needs an action as its first argument: wave, greet or nod\n'],
    [['gesture', '-c', 'plugboard.yaml', 'wave'], 'plugboard: plugboard gesture needs an action as its first argument: wave'],
    [
      ['gesture', 'wav'],
      'plugboard: plugboard gesture has no action "wav", did you mean wave?\nRun plugboard gesture --help for its actions.\n',
    ],
    [['gesture', 'toString'], 'plugboard: plugboard gesture has no action "toString"; known: wave, greet or nod\n'],
    [['greet', 'all', '--from', 'me'], 'plugboard: greet one by one\n'],
    [['gret'], 'plugboard: unknown command "gret", did you mean greet?\nRun plugboard --help for the commands.\n'],
  ] as const) {
    t.match(await run(t, args, { cwd }), { code: 2, stdout: '', stderr: message }, args.join(' '));
  }
});

t.test('a failed command is reported without a stack, a defect with one', async (t) => {
  const cwd = t.testdir(distributionWith(GREETING));
  t.strictSame(await run(t, ['greet', 'nobody', '--from', 'me'], { cwd }), {
    code: 1,
    stdout: '',
    stderr: 'plugboard: nobody is not there\n',
  });
  t.match(await run(t, ['greet', 'bug', '--from', 'me'], { cwd }), {
    code: 1,
    stderr: /^plugboard: Error: a defect\n +at .*extra\.js/,
  });
});

t.test('several entries with a command of one name require --entry', async (t) => {
  const files = distributionWith(GREETING);
  const yaml = `${distribution['plugboard.yaml']}\nplugins: { one: { use: ./extra.js }, two: { use: ./extra.js } }\n`;
  const cwd = t.testdir({ ...files, 'plugboard.yaml': yaml });
  const greet = (...args: string[]) => run(t, ['greet', 'you', '--from', 'me', ...args], { cwd });
  t.match(await greet(), {
    code: 2,
    stderr: 'plugboard: plugins.one and plugins.two both have the command "greet"; choose one, for example --entry plugins.one\n',
  });
  t.match(await greet('--entry', 'plugins.two'), { code: 3, stdout: 'plugins.two: me greets you \n' });
  t.match(await greet('--entry=plugins.three'), {
    code: 2,
    stderr: 'plugboard: plugins.three has no command "greet"; plugins.one and plugins.two do\n',
  });
  t.equal((await run(t, ['--help'], { cwd })).stdout.match(/Greets somebody/g)?.length, 1);
});

t.test('a command runs despite mistakes in other entries and reports them', async (t) => {
  const files = distributionWith(GREETING);
  const wrong = `${files['plugboard.yaml']}\nmodels: { fast: { use: ./extra.js, apiKey: "\${NOT_HERE}" }, gone: { use: ./gone.js } }\n`;
  const cwd = t.testdir({ ...files, 'plugboard.yaml': wrong });
  t.strictSame(await run(t, ['gesture', 'wave'], { cwd }), {
    code: 0,
    stdout: 'waved\n',
    stderr: 'plugboard.yaml has mistakes that do not matter here; plugboard check lists them\n',
  });
  t.match(await run(t, ['check'], { cwd }), { code: 78 });
});

t.test('a command says that a running server does not have its entry yet', async (t) => {
  const files = distributionWith(GREETING);
  const cwd = t.testdir({ ...files, 'plugboard.yaml': distribution['plugboard.yaml'] ?? '' });
  const env = { TMPDIR: cwd };
  const server = new Plugboard(t, ['start'], { cwd, env });
  await server.prints('curl ');
  await writeFile(join(cwd, 'plugboard.yaml'), files['plugboard.yaml'] ?? '');
  const { code, stderr } = await run(t, ['gesture', 'wave'], { cwd, env });
  t.equal(code, 0);
  t.match(stderr, /^server \d+ runs without plugins\.extra: run plugboard reload, or restart it\n$/);
  server.kill('SIGHUP');
  await server.logs('the changed configuration was applied');
  t.match(await run(t, ['gesture', 'wave'], { cwd, env }), { code: 0, stderr: '' });
  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
});

t.test('help and suggestions for mistyped commands work with an invalid file', async (t) => {
  const cwd = t.testdir({ 'plugboard.yaml': 'transprots: {}' });
  t.match(await run(t, ['--help'], { cwd }), { code: 0, stderr: '' });
  t.match(await run(t, ['strat'], { cwd }), { code: 2, stderr: 'unknown command "strat", did you mean start?' });
});

t.test('the help lists plugboard token, also if the file lacks its plugin or cannot be read', async (t) => {
  const needs = /\n {2}token +Creates, .* API tokens; needs "auth: \{ bearer: \{\} \}" in the file\n/;
  t.match((await run(t, ['--help'], { cwd: t.testdir(distribution) })).stdout, needs);
  t.match((await run(t, ['--help'], { cwd: t.testdir({}) })).stdout, needs);
  const { stdout } = await run(t, ['--help'], {
    cwd: t.testdir(
      distributionWith('ctx.contribute(contracts.Commands, { summary: "Own", options: {}, run: async () => 0 }, "token")'),
    ),
  });
  t.match(stdout, /\n {2}token +Own\n/);
  t.equal(stdout.split('  token ').length, 2);
});

t.test('plugboard token --help needs no configuration', async (t) => {
  for (const [what, files] of [
    ['no file', {}],
    ['a file without the plugin', distribution],
    ['a file that is not YAML', { 'plugboard.yaml': 'transports: [' }],
  ] as const) {
    const cwd = t.testdir(files);
    const family = await run(t, ['token', '--help'], { cwd });
    t.match(family, { code: 0, stdout: /^Usage: plugboard token ACTION [\s\S]* {2}create +Creates a token/, stderr: '' }, what);
  }
  const one = await run(t, ['token', 'create', '--help'], { cwd: t.testdir({}) });
  t.match(one, { code: 0, stdout: /^Usage: plugboard token create --project P --name N /, stderr: '' });
});

t.test('plugboard token names the entry that the file lacks', async (t) => {
  const cwd = t.testdir(distribution);
  t.match(await run(t, ['token', 'list'], { cwd }), {
    code: 2,
    stderr:
      'plugboard: unknown command "token": no plugin of plugboard.yaml provides it; install @plugboard/auth-bearer, and add "auth: { bearer: {} }" to the file\n',
  });
  t.match(await run(t, ['token', 'list'], { cwd: t.testdir({ ...distribution, 'plugboard.yaml': 'transprots: {}' }) }), {
    code: 78,
    stderr: /unknown section, did you mean "transports"\?/,
  });
});

/** Counts in its state how often it was called. */
const COUNTER = `
  const { state } = ctx;
  const count = async (args, terminal) => {
    const calls = Number(await state.get('calls') ?? 0) + 1;
    await state.put('calls', calls);
    terminal.print(String(calls));
    return 0;
  };
  ctx.contribute(contracts.Commands, { summary: 'Counts its calls', options: {}, usesState: () => true, run: count }, 'count');
`;

t.test('a command that uses ctx.state has the session store started for it', async (t) => {
  const files = distributionWith(COUNTER);
  const cwd = t.testdir({
    ...files,
    'plugboard.yaml': `${files['plugboard.yaml']}\nsessions: { use: sqlite, path: ./data/s.db }\n`,
  });
  for (const stdout of ['1\n', '2\n']) t.match(await run(t, ['count'], { cwd }), { code: 0, stdout, stderr: '' });
  await writeFile(join(cwd, 'data/s.db'), 'no database');
  t.match(await run(t, ['count'], { cwd }), { code: 1, stdout: '', stderr: /^plugboard: .*sessions/ });
  const yaml = `${files['plugboard.yaml']}\nsessions: { use: sqlite, path: "\${NOT_SET_IN_TESTS}" }\n`;
  await writeFile(join(cwd, 'plugboard.yaml'), yaml);
  t.match(await run(t, ['count'], { cwd }), { code: 78, stderr: /NOT_SET_IN_TESTS/ });
});
