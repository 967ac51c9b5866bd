import t from 'tap';
import { crash, flag, started } from './started.js';

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
