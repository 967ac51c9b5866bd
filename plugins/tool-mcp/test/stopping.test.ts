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

t.test('stop closes the standard input, which ends the server; calls then fail and nothing is restarted', async (t) => {
  const { files, child } = await started(t);
  const hanging = t.rejects(files.call('hang', { label: 'a call' }), STOPPED);
  await files.logged(/a call hangs/);
  await files.stop();
  await child.gone;
  await hanging;
  await t.rejects(files.call('echo', { text: 'x' }), STOPPED);
  t.equal(files.clock.pending, 0, 'nothing is planned');
  t.notMatch(JSON.stringify(files.lines), /has ended/);
});

t.test('a server that ignores the end of its input gets SIGTERM after one second and SIGKILL after two more', async (t) => {
  const { files, child } = await started(t, '--stubborn');
  const stopping = files.stop();
  await files.advance(1000);
  await files.logged(/SIGTERM is ignored/);
  await files.advance(2000);
  await stopping;
  await child.gone;
});

t.test('stop without start, and a second stop, do nothing', async (t) => {
  const idle = entry(t, fixture());
  await idle.stop();
  await idle.stop();
  const { files } = await started(t);
  await Promise.all([files.stop(), files.stop()]);
  await files.stop();
});

t.test('stop ends a running start', async (t) => {
  const watch = await witness(t);
  const files = entry(t, fixture('--witness', String(watch.port), '--mute', FOLDER));
  const starting = t.rejects(files.start(), STOPPED);
  const { gone } = await watch.next();
  await files.stop();
  await gone;
  await starting;
});

t.test('stop cancels a scheduled restart and ends a running one', async (t) => {
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

t.test('processes that the server has started end with it:', async (t) => {
  await t.test('when it is stopped', async (t) => {
    const { files, child, watch } = await started(t, '--grandchild', 'near');
    const grandchild = await watch.next();
    await files.stop();
    await Promise.all([child.gone, grandchild.gone]);
  });
  await t.test('when it is killed', async (t) => {
    const { files, watch } = await started(t, '--grandchild', 'near');
    const grandchild = await watch.next();
    await t.rejects(files.call('crash', { signal: 'SIGKILL' }));
    await grandchild.gone;
  });
});

t.test('a process that the server left behind, holding its pipes, does not hide its end', async (t) => {
  const { files, child, watch } = await started(t, '--grandchild', 'away');
  const grandchild = await watch.next();
  t.teardown(() => process.kill(grandchild.pid));
  const lost = t.rejects(files.call('crash', { code: 5 }), { code: 'mcp_call_lost' });
  await child.gone;
  await files.advance(1000);
  await lost;
  t.match(await files.logged(/has ended/), { msg: /exited with code 5$/ });
});

t.test('the server ends when this process ends without a stop:', async (t) => {
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
  await t.test('after process.exit, even if it ignores signals', async (t) => {
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
