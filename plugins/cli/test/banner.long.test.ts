import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { distributionWith } from './plugboard.js';

const START = `${process.execPath} ${join(import.meta.dirname, '../bin/plugboard.js')} start`;

t.test('on a terminal no line of the log is between two lines of the banner, also if the start is slow', async (t) => {
  const slow = `return { async start() {
    await new Promise((resolve) => setTimeout(resolve, 3500));
    ctx.log.info('late, at last');
  } };`;
  const { PATH, NODE_OPTIONS } = process.env;
  const program = spawn('script', ['-qec', START, '/dev/null'], {
    cwd: t.testdir(distributionWith(slow)),
    env: { PATH, NODE_OPTIONS, NO_COLOR: '1' },
    stdio: 'pipe',
  });
  t.teardown(() => program.kill('SIGKILL'));
  let shown = '';
  program.stdout.on('data', (data) => {
    shown += data;
  });
  while (!shown.includes('try ')) await once(program.stdout, 'data');
  const lines = shown.split('\r\n').map((line) => line.trim().split(/ {2,}/)[0] ?? '');
  const banner = ['agents', 'models', 'sessions', 'process', 'access', 'warning', 'address', 'try'];
  t.strictSame(lines.slice(lines.indexOf('agents'), lines.indexOf('agents') + banner.length), banner);
  t.match(shown, /\nstill starting: plugins\.extra\r\n[\s\S]*late, at last[\s\S]*\nplugboard \d/);
  program.stdin.write('\x03');
  await once(program, 'close');
});
