import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { entry, FOLDER, fixture } from './entry.js';
import { witness } from './witness.js';

const STOPPED = { code: 'mcp_not_running', message: 'the MCP server of tools.files has been stopped' };

/** A fixture that runs, and its process. */
async function started(t: Test, ...args: string[]) {
  const watch = await witness(t);
  const files = entry(t, fixture('--witness', String(watch.port), ...args));
  const starting = files.start();
  const child = await watch.next();
  await starting;
  return { files, child, watch };
}

t.test('a stop closes the standard input, which ends a server; calls fail from then on, and nothing is restarted', async (t) => {
  const { files, child } = await started(t);
  const hanging = t.rejects(files.call('hang', { label: 'a call' }), STOPPED);
  await files.logged(/a call hangs/);
  await files.stop();
  await child.gone;
  await hanging;
  await t.rejects(files.call('echo', { text: 'x' }), STOPPED);
  t.equal(files.clock.pending, 0, 'nothing is planned');
  t.notMatch(JSON.stringify(files.lines), /is gone/);
});

t.test(
  'a server that does not heed the end of its input gets SIGTERM after a second, and is killed after two more',
  async (t) => {
    const { files, child } = await started(t, '--stubborn');
    const stopping = files.stop();
    await files.advance(1000);
    await files.logged(/SIGTERM is ignored/);
    await files.advance(2000);
    await stopping;
    await child.gone;
  },
);

t.test('a stop without a start, and a second one, do nothing', async (t) => {
  const idle = entry(t, fixture());
  await idle.stop();
  await idle.stop();
  const { files } = await started(t);
  await Promise.all([files.stop(), files.stop()]);
  await files.stop();
});

t.test('a stop ends a start that is under way', async (t) => {
  const watch = await witness(t);
  const files = entry(t, fixture('--witness', String(watch.port), '--mute', FOLDER));
  const starting = t.rejects(files.start(), STOPPED);
  const { gone } = await watch.next();
  await files.stop();
  await gone;
  await starting;
});

t.test('a stop ends the wait for a restart, and a restart that is under way', async (t) => {
  const waiting = await started(t);
  await t.rejects(waiting.files.call('crash', { code: 1 }));
  await waiting.files.stop();
  t.equal(waiting.files.clock.pending, 0);

  const { files, watch } = await started(t);
  await t.rejects(files.call('crash', { code: 1 }));
  files.clock.advance(1000);
  const { gone } = await watch.next();
  await files.stop();
  await gone;
  t.equal(files.clock.pending, 0);
  t.notMatch(JSON.stringify(files.lines), /could not be restarted/);
});

t.test('what the server has started goes with it:', async (t) => {
  await t.test('when it is stopped', async (t) => {
    const { files, child, watch } = await started(t, '--grandchild', 'near');
    const grandchild = await watch.next();
    await files.stop();
    await Promise.all([child.gone, grandchild.gone]);
  });
  await t.test('when it dies', async (t) => {
    const { files, watch } = await started(t, '--grandchild', 'near');
    const grandchild = await watch.next();
    await t.rejects(files.call('crash', { signal: 'SIGKILL' }));
    await grandchild.gone;
  });
});

t.test('a process that the server left behind with its pipes does not hide its end', async (t) => {
  const { files, child, watch } = await started(t, '--grandchild', 'away');
  const grandchild = await watch.next();
  t.teardown(() => process.kill(grandchild.pid));
  const lost = t.rejects(files.call('crash', { code: 5 }), { code: 'mcp_call_lost' });
  await child.gone;
  await files.advance(1000);
  await lost;
  t.match(await files.logged(/is gone/), { msg: /exited with code 5$/ });
});

t.test('when this process ends without a stop, the server does too:', async (t) => {
  const host = async (t: Test, ...args: string[]) => {
    const watch = await witness(t);
    const script = join(FOLDER, 'fixtures/host.ts');
    const process_ = spawn(process.execPath, [...process.execArgv, script, '--witness', String(watch.port), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.teardown(() => process_.kill('SIGKILL'));
    await once(process_.stdout, 'data');
    return { process: process_, child: await watch.next() };
  };
  await t.test('after process.exit, however stubborn', async (t) => {
    const { process, child } = await host(t, '--stubborn');
    process.stdin.write('exit\n');
    t.strictSame(await once(process, 'exit'), [1, null]);
    await child.gone;
  });
  await t.test('after SIGKILL, by the end of its input', async (t) => {
    const { process, child } = await host(t);
    process.kill('SIGKILL');
    await child.gone;
  });
});
