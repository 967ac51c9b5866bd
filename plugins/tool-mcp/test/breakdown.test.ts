import t from 'tap';
import { crash, LOST, started } from './started.js';

const SOON = {
  code: 'mcp_not_running',
  message: 'the MCP server of tools.files has ended and is being restarted: try again in a few seconds',
};

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

t.test('the entry is degraded while its server is away, and says so', async (t) => {
  const files = await started(t);
  t.same(files.health(), { state: 'ok' });
  await crash(t, files);
  t.match(files.health(), { state: 'degraded', reason: /is restarted/ });
  files.clock.advance(1000);
  await files.logged(/is ready/);
  t.same(files.health(), { state: 'ok' });
});

t.test('a server that is killed is restarted too', async (t) => {
  const files = await started(t);
  t.match(await crash(t, files, { signal: 'SIGKILL' }), { msg: /was ended by SIGKILL$/ });
  files.clock.advance(1000);
  await files.logged(/is ready/);
  t.equal(await files.text('echo', { text: 'back' }), 'back');
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
