import t from 'tap';
import { crash, flag, started } from './started.js';
import { witness } from './witness.js';

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
