/** Messages of a server that are too large to be read (S-75). */
import t from 'tap';
import { LOST, started } from './started.js';

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
