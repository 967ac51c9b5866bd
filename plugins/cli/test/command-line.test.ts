import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from './plugboard.js';

const cwd = t.testdir({});
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8'));

t.test('help is printed for every spelling of the request', async (t) => {
  for (const args of [[], ['--help'], ['-h'], ['help']]) {
    const { code, stdout } = await run(t, args, { cwd });
    t.equal(code, 0);
    t.match(
      stdout,
      /^Usage: plugboard COMMAND[\s\S]*\n {2}start +Runs the server[\s\S]*\n {2}check +[\s\S]*\n {2}plugins +[\s\S]*\n {2}schema +/,
    );
  }
  for (const [command, usage] of [
    ['start', '[-c FILE] [--watch]'],
    ['check', '[-c FILE] [--diff]'],
    ['plugins', '[-c FILE] [--json]'],
    ['schema', '[-c FILE]'],
  ] as const) {
    const { code, stdout } = await run(t, [command, '--help'], { cwd });
    t.equal(code, 0);
    t.match(stdout, `Usage: plugboard ${command} ${usage}\n`);
    t.match(stdout, '-c, --config FILE  the configuration file; by default plugboard.yaml in the working folder');
  }
});

t.test('--version prints the version of the package', async (t) => {
  t.match(await run(t, ['--version'], { cwd }), { code: 0, stdout: `${version}\n` });
});

t.test('an older Node.js is refused with the cure', async (t) => {
  const older = `Object.defineProperty(process, 'versions', { value: { node: '20.9.0' } })`;
  const env = { NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(older)}"` };
  t.match(await run(t, ['--version'], { cwd, env }), {
    code: 1,
    stdout: '',
    stderr:
      /^plugboard needs Node\.js 24 or newer; this is .*Install it, or run "npm install node@24" in this folder and use "npx plugboard"\.\n$/,
  });
});

t.test('a clone that is not built is refused with the cure', async (t) => {
  const root = t.testdir({ plugins: { cli: { bin: {}, 'package.json': '{"type":"module"}' } } });
  const program = join(root, 'plugins/cli/bin/plugboard.js');
  copyFileSync(join(import.meta.dirname, '../bin/plugboard.js'), program);
  const { status, stderr } = spawnSync(process.execPath, [program, 'start'], { encoding: 'utf8' });
  t.equal(status, 1);
  t.equal(stderr, `plugboard is not built yet: run "npm run build" in ${root} first. "npm start" builds it, too.\n`);
});

t.test('an invalid command line exits with 2 and a hint', async (t) => {
  for (const [args, message] of [
    [['strat'], 'plugboard: unknown command "strat", did you mean start?'],
    [['toString'], 'plugboard: unknown command "toString"\n'],
    [['check', '--confg', 'x'], 'plugboard: unknown option --confg, did you mean --config?'],
    [['check', '-x'], 'plugboard: unknown option -x\n'],
    [['check', '-c'], 'plugboard: -c needs a value: -c FILE'],
    [['plugins', '-c', '--json'], 'plugboard: -c needs a value: -c FILE'],
    [['plugins', '--json=yes'], 'plugboard: --json takes no value'],
    [['check', 'plugboard.yaml'], 'plugboard: unexpected argument "plugboard.yaml"'],
  ] as const) {
    const { code, stdout, stderr } = await run(t, args, { cwd });
    t.equal(code, 2);
    t.equal(stdout, '');
    t.match(stderr, message);
    const hint = /unknown command/.test(stderr) ? '--help for the commands' : `${args[0]} --help for its arguments`;
    t.match(stderr, `\nRun plugboard ${hint}.\n`);
  }
});
