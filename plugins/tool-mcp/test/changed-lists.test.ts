import t from 'tap';
import { entry, fixture } from './entry.js';
import { crash, started } from './started.js';

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
