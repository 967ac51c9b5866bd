import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { type Entry, entry, fixture } from './entry.js';
import { witness } from './witness.js';

const SOON = {
  code: 'mcp_not_running',
  message: 'the MCP server of tools.files has ended and is being restarted: try again in a few seconds',
};
const LOST = {
  code: 'mcp_call_lost',
  message: /^the MCP server of tools\.files ended during this call and is being restarted: /,
};

async function started(t: Test, ...args: string[]) {
  const files = entry(t, fixture(...args));
  await files.start();
  await files.logged(/is ready/);
  return files;
}

/** A file that a fixture looks for; `put` and `remove` it. */
function flag(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'flag');
  return { path, put: () => writeFileSync(path, ''), remove: () => rmSync(path) };
}

async function crash(t: Test, files: Entry, how: Record<string, unknown> = { code: 7 }) {
  await t.rejects(files.call('crash', how), LOST);
  return files.logged(/has ended/);
}

t.test(
  'after the server ends, calls fail naming the entry, its tools stay declared, and it is restarted after one second',
  async (t) => {
    const files = await started(t);
    const names = files.names();
    const hanging = files.call('hang', { label: 'a call' });
    const line = await crash(t, files);
    t.match(line, {
      level: 'warn',
      msg: /^the MCP server has ended: ".*" exited with code 7$/,
      lastLines: ['a call hangs', 'about to crash'],
    });
    await t.rejects(hanging, LOST, 'every call that was under way is lost');
    await t.rejects(files.call('echo', { text: 'x' }), SOON);
    t.strictSame(files.names(), names);

    files.clock.advance(999);
    await t.rejects(files.call('echo', { text: 'x' }), SOON);
    files.clock.advance(1);
    await files.logged(/is ready/);
    t.equal(await files.text('echo', { text: 'back' }), 'back');
    t.strictSame(files.names(), names);
  },
);

t.test('a server that is killed is restarted too', async (t) => {
  const files = await started(t);
  t.match(await crash(t, files, { signal: 'SIGKILL' }), { msg: /was ended by SIGKILL$/ });
  files.clock.advance(1000);
  await files.logged(/is ready/);
  t.equal(await files.text('echo', { text: 'back' }), 'back');
});

t.test('failed restarts are retried one at a time, after growing delays of up to 30 seconds', async (t) => {
  const absent = flag(t);
  const files = await started(t, '--absent', absent.path);
  absent.put();
  await crash(t, files);
  for (const pause of [1, 2, 4, 8, 16, 30, 30]) {
    t.equal(files.clock.pending, 1, 'nothing else is under way');
    files.clock.advance(pause * 1000 - 1);
    t.equal(files.clock.pending, 1);
    files.clock.advance(1);
    const line = await files.logged(/could not be restarted/);
    t.match(line, {
      level: 'warn',
      msg: /: ".*" exited with code 3; its last output:\n .* is in the way$/,
    });
  }
  absent.remove();
  files.clock.advance(30_000);
  await files.logged(/is ready/);
  t.equal(await files.text('echo', { text: 'back' }), 'back');
});

t.test('the restart delay grows if the server ends soon after each restart, and starts again after a stable run', async (t) => {
  const files = await started(t);
  for (const pause of [1000, 2000, 4000]) {
    await crash(t, files);
    files.clock.advance(pause - 1);
    t.equal(files.clock.pending, 1);
    files.clock.advance(1);
    await files.logged(/is ready/);
  }
  files.clock.advance(30_000);
  await crash(t, files);
  files.clock.advance(1000);
  await files.logged(/is ready/);
});

t.test('a restart without an answer is abandoned after ten seconds and retried', async (t) => {
  const mute = flag(t);
  const watch = await witness(t);
  const files = await started(t, '--mute', mute.path, '--witness', String(watch.port));
  await watch.next();
  mute.put();
  await crash(t, files);
  files.clock.advance(1000);
  const { gone } = await watch.next();
  await files.logged(/I say nothing/);
  files.clock.advance(10_000);
  t.match(await files.logged(/could not be restarted/), { msg: /did not answer in time/ });
  await gone;
  mute.remove();
  files.clock.advance(2000);
  await files.logged(/is ready/);
});

t.test('a server that closes its standard input or output counts as ended', async (t) => {
  for (const tool of ['closeInput', 'closeOutput']) {
    await t.test(tool, async (t) => {
      const files = await started(t);
      const lost = t.rejects(
        files.call(tool).then(() => files.call('echo', { text: 'x' })),
        LOST,
      );
      await files.advance(1000);
      await lost;
      t.match(files.lines.at(-1), { msg: /closed its standard input or output and kept running$/ });
    });
  }
});

t.test('S-75 a result of more than 16 MiB is an error of its call alone', async (t) => {
  const files = await started(t);
  const before = process.memoryUsage().rss;
  await t.rejects(files.call('large', { mib: 100 }), {
    code: 'mcp_call_refused',
    message: 'the result is larger than 16 MiB and was not read; ask for less of it',
  });
  t.ok(process.memoryUsage().rss - before < 200 * 2 ** 20, 'it is not held');
  t.equal((await files.text('large', { mib: 15 })).length, 15 * 2 ** 20);
});

t.test('S-75 a message of more than 16 MiB that answers no call ends the connection', async (t) => {
  const files = await started(t);
  await t.rejects(files.call('shout', { mib: 17 }), LOST);
  t.match(await files.logged(/has ended/), { msg: /sent a message of more than 16 MiB$/ });
});

t.test('S-75 of a list without end, 1,000 tools and 4 MiB are offered', async (t) => {
  for (const [kind, offered] of [
    ['many', 1000],
    ['large', 4],
    ['pages', 1000],
  ] as const) {
    const files = entry(t, fixture('--list', kind));
    await files.start();
    t.equal(files.names().length, offered, kind);
    t.match(await files.logged(/lists more than/), {
      msg: 'the MCP server lists more than 1000 tools, or 4 MiB of them; the rest were skipped. Have it offer fewer tools',
      offered,
    });
    await files.stop();
  }
  const nameless = entry(t, fixture('--list', 'nameless'));
  await nameless.start();
  await nameless.logged(/"990 more tools of the MCP server were skipped"/);
});

t.test('S-75 a list that changes without end is read once a second', async (t) => {
  const files = await started(t);
  const reads = async () => Number(await files.text('lists'));
  await files.call('change', { add: ['a'] });
  files.clock.advance(100);
  await eventually(() => files.names().includes('a'));
  const before = await reads();
  await files.call('change', { add: ['b'], times: 50 });
  files.clock.advance(100);
  t.equal(await reads(), before);
  files.clock.advance(900);
  await eventually(() => files.names().includes('b'));
  t.equal(await reads(), before + 1);
});

t.test('a changed list of tools is read again, once for many changes, in the order of the server', async (t) => {
  const files = await started(t);
  const names = files.names();
  const lists = Number(await files.text('lists'));
  await files.call('change', { add: ['newest', 'newer'], remove: ['large'], times: 50 });
  t.strictSame(files.names(), names);
  files.clock.advance(100);
  t.match(await files.logged(/has changed its tools/), { level: 'info', tools: names.length + 1 });
  t.strictSame(files.names(), [...names.filter((name) => name !== 'large'), 'newest', 'newer']);
  t.equal(await files.text('newest'), 'newest');
  t.equal(Number(await files.text('lists')), lists + 1);
});

t.test('a change during the start is not missed', async (t) => {
  const files = await started(t, '--hasty');
  files.clock.advance(100);
  await files.logged(/has changed its tools/);
});

t.test('a change while the first list is read is not missed', async (t) => {
  const files = entry(t, fixture('--late'));
  const starting = files.start();
  await files.logged(/the list is late/);
  files.clock.advance(100);
  await starting;
  t.notOk(files.names().includes('newest'));
  files.clock.advance(100);
  await files.logged(/has changed its tools/);
  t.ok(files.names().includes('newest'));
});

t.test('keeps the old list and warns if a changed list cannot be read', async (t) => {
  const files = await started(t);
  const names = files.names();
  await files.call('change', { add: ['newest'], broken: 1 });
  files.clock.advance(100);
  t.match(await files.logged(/could not be read/), { level: 'warn', msg: /: its list of tools is not an array$/ });
  t.strictSame(files.names(), names);
  await files.call('change');
  files.clock.advance(1000);
  await files.logged(/has changed its tools/);
  t.equal(files.names().at(-1), 'newest');
});

t.test('a change just before the server ends is read by the restart', async (t) => {
  const files = await started(t);
  await files.call('change');
  await crash(t, files);
  files.clock.advance(100);
  files.clock.advance(1000);
  await files.logged(/is ready/);
  t.notMatch(JSON.stringify(files.lines), /could not be read/);
});
