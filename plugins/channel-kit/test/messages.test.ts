import t from 'tap';
import { keysOf, opened } from './open-channel.js';

t.test('CH-6 runs each message once, in order per chat, in the session of its chat', async (t) => {
  const { platform, runtime, state, start, stop, sent, logs } = opened();
  await start();
  runtime.enqueue({ text: 'Hello, Ann.' }, { text: 'Hello, Ben.' }, { text: 'Again.' });
  t.equal(await platform.say('Hi'), 'taken');
  await sent(1);
  t.equal(await platform.say('Hi', 'c2'), 'taken');
  await sent(2);
  t.equal(await platform.say('Hi again'), 'taken');
  await sent(3);
  await stop();
  t.strictSame(platform.texts(), ['Hello, Ann.', 'Hello, Ben.', 'Again.']);
  t.match(
    platform.sent.map(({ id, replyTo, kind, agent, index, count }) => ({ id, replyTo, kind, agent, index, count })),
    [{ id: /^msg_/, replyTo: 'm1', kind: 'reply', agent: 'helper', index: 0, count: 1 }, { replyTo: 'm2' }, { replyTo: 'm3' }],
  );
  t.strictSame(
    runtime.requests.map(({ session }) => session?.key),
    ['desk:c1', 'desk:c2', 'desk:c1'],
  );
  t.strictSame(
    (await keysOf(state)).filter((key) => !key.startsWith('kit/id/')),
    ['kit/stopped'],
    'nothing is left but the ids',
  );
  t.strictSame(logs, []);
});
