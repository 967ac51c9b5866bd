/** Lists of tools without end (S-75). */
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { entry, fixture } from './entry.js';
import { started } from './started.js';

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
