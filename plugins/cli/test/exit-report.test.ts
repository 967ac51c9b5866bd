import { join } from 'node:path';
import t from 'tap';
import { distributionWith, Plugboard, plugin, run } from './plugboard.js';

const CURE = 'a plugin must not end the process: throw an error instead, or send it SIGTERM';

t.test('R-053 a plugin that ends the process while it is imported is reported, and the exit code is 1', async (t) => {
  for (const command of ['check', 'start']) {
    const cwd = t.testdir({ ...distributionWith(''), 'extra.js': `process.exit(0);\n${plugin('extra')}` });
    const path = join(cwd, 'extra.js');
    t.same(await run(t, [command], { cwd }), {
      code: 1,
      stdout: '',
      stderr: `plugboard: process.exit(0) was called during the import of ${path}, at ${path}:1:9; ${CURE}\n`,
    });
  }
});

t.test('R-053 so is one that ends it in a method, with the entry', async (t) => {
  const found = async (command: string, register: string, code: number) => {
    const cwd = t.testdir(distributionWith(register));
    const { stderr, ...rest } = await run(t, [command], { cwd });
    t.equal(rest.code, code);
    const [line = ''] = stderr.split('\n').filter((text) => text.startsWith('plugboard:'));
    return line.replaceAll(cwd, '').replace(/:\d+:\d+;/, ';');
  };
  const during = (method: string, code: number) =>
    `plugboard: process.exit(${code}) was called during ${method}() of plugins.extra (extra 0.1.0, /extra.js), at /extra.js; ${CURE}`;
  t.equal(await found('check', 'process.exit()', 1), during('register', 0));
  t.equal(await found('check', 'process.exit(3)', 3), during('register', 3), 'its own code stays, if it is a failure');
  t.equal(await found('start', 'return { async start() { process.exit(0); } };', 1), during('start', 0));
});

t.test('R-061 a plugin that ends a running server is reported, and the exit code is 1', async (t) => {
  const cwd = t.testdir(distributionWith('process.once("SIGUSR2", () => process.exit(0)); return { stop() {} };'));
  const program = new Plugboard(t, ['start'], { cwd });
  await program.prints('curl ');
  program.kill('SIGUSR2');
  t.equal(await program.exit(), 1);
  t.match(program.stderr, `plugboard: process.exit(0) was called while the server ran, at ${join(cwd, 'extra.js')}:`);
});

t.test('a command of a plugin may end the process', async (t) => {
  const leave = '{ summary: "Leaves", options: {}, run: async () => process.exit(0) }';
  const cwd = t.testdir(distributionWith(`ctx.contribute(contracts.Commands, ${leave}, "leave")`));
  t.same(await run(t, ['leave'], { cwd }), { code: 0, stdout: '', stderr: '' });
});
