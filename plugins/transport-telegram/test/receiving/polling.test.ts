import { eventually } from '@plugboard/testing';
import t from 'tap';
import { openPlatform } from '../support/open-platform.js';
import { messageOf } from '../support/updates.js';

const CONFLICT = 'something else polls this bot, too; stop it, or give each its own bot';

t.test('TG-2 the offset is sent only after the update is durable, and is there after a restart', async (t) => {
  const { server, messages, ctx, faults, run } = await openPlatform(t);
  const first = run();
  await eventually(() => server.of('getUpdates').length === 2); // the second is held open
  faults.push(new Error('the disk is full'));
  const id = server.push(messageOf({ text: 'Hello' }));
  await t.rejects(first.running, /the disk is full/);
  t.strictSame(
    server.of('getUpdates').map(({ payload }) => payload.offset),
    [undefined, undefined],
    'nothing was confirmed',
  );

  const second = run();
  await eventually(() => server.updates.length === 0);
  t.match(await ctx.state.get('offset/4711'), { next: id + 1 });
  t.equal(messages.length, 1);
  await second.stop();

  const third = run();
  await eventually(() => server.of('getUpdates').length >= 5);
  t.equal(server.of('getUpdates').at(-1)?.payload.offset, id + 1);
  await third.stop();
});

t.test('an offset of six days ago is not sent, and lower numbers are taken', async (t) => {
  const { server, messages, clock, run } = await openPlatform(t);
  const before = run();
  server.push(messageOf({ text: 'one' }));
  await eventually(() => messages.length === 1 && server.of('getUpdates').at(-1)?.payload.offset === 1002);
  await before.stop();
  clock.advance(6 * 24 * 3_600_000);
  server.restartIds(5);
  server.updates = [];
  server.push(messageOf({ text: 'two' }));
  server.calls.length = 0;
  const after = run();
  await eventually(() => messages.length === 2);
  await eventually(() => server.of('getUpdates').length >= 2);
  t.equal(server.of('getUpdates')[0]?.payload.offset, undefined);
  t.equal(server.of('getUpdates')[1]?.payload.offset, 6);
  await after.stop();
});

t.test('TG-1 beside a second poller it polls after 5 s, then twice as long, at most 60 s', async (t) => {
  const { server, clock, events, run } = await openPlatform(t);
  const conflict = { code: 409, description: 'Conflict: terminated by other getUpdates request' };
  server.answer('getUpdates', ...Array.from({ length: 7 }, () => conflict));
  const { stop } = run();
  for (const [at, seconds] of [5, 10, 20, 40, 60, 60].entries()) {
    await eventually(() => server.of('getUpdates').length === at + 1 && clock.isWaiting(seconds * 1_000));
    clock.advance(seconds * 1_000);
  }
  t.strictSame(events, [CONFLICT], 'the reason names the cure, once');
  await eventually(() => server.of('getUpdates').length === 7 && clock.isWaiting(60_000));
  clock.advance(60_000);
  server.longestPoll = 0.01; // the other one has gone: a poll lasts
  await eventually(() => events.length === 2);
  t.equal(events[1], 'connected @PlugBot');
  await stop();
});

t.test('TG-1 a webhook that others set is not deleted', async (t) => {
  const { server, clock, events, run } = await openPlatform(t);
  server.webhook = { url: 'https://other.example/hook' };
  server.push(messageOf({ text: 'Hello' }));
  const { stop } = run();
  await eventually(() => events.length === 1);
  t.match(
    events[0],
    /^a webhook is set for this bot, so it cannot be polled; delete it \(deleteWebhook\), or use `mode: webhook`$/,
  );
  server.webhook = { url: '' };
  await eventually(() => clock.isWaiting(5_000));
  clock.advance(5_000);
  await eventually(() => events.length === 2);
  t.equal(events[1], 'connected @PlugBot');
  t.strictSame(
    [...new Set(server.calls.map(({ method }) => method))],
    ['getMe', 'getUpdates'],
    'nothing was changed at Telegram',
  );
  await stop();
});

t.test('TG-3 a poll that does not return in 90 s is given up and begun again without loss', async (t) => {
  const { server, clock, messages, events, run } = await openPlatform(t);
  const { stop } = run();
  await eventually(() => server.of('getUpdates').length === 2);
  await stop();
  server.answer('getUpdates', 'silent');
  server.calls.length = 0;
  const again = run();
  await eventually(() => server.of('getUpdates').length === 1 && clock.isWaiting(90_000));
  server.push(messageOf({ text: 'Hello' }));
  clock.advance(89_999);
  t.equal(messages.length, 0);
  clock.advance(1);
  await eventually(() => messages.length === 1);
  t.match(events.at(-2), /no answer of Telegram: none within 90 s/);
  t.equal(events.at(-1), 'connected @PlugBot');
  await again.stop();
});

t.test('CH-9 a wrong token is one line with the cure, and is tried again', async (t) => {
  const { server, clock, events, run } = await openPlatform(t);
  server.token = '1:another_token';
  const { stop } = run();
  await eventually(() => clock.isWaiting(1_000));
  t.equal(events[0], 'Telegram refuses the token; set `token` to the one that @BotFather gives for this bot');
  clock.advance(1_000);
  await eventually(() => server.of('getMe').length === 2 && clock.isWaiting(2_000));
  t.equal(events.length, 1);
  await stop();
});

const outages = {
  '500': { code: 500, description: 'Internal Server Error' },
  'a closed socket': 'closed',
  'the page of a proxy': 'html',
  'an answer that was lost': 'done-and-closed',
} as const;
for (const [name, answer] of Object.entries(outages)) {
  t.test(`nothing is lost or taken twice after ${name}`, async (t) => {
    const { server, clock, messages, events, ctx, run } = await openPlatform(t);
    server.answer('getUpdates', answer);
    server.push(messageOf({ text: 'Hello' }));
    const { stop } = run();
    await eventually(() => clock.isWaiting(5_000));
    t.notMatch(JSON.stringify([events, ctx.logs]), /scripted_token/, 'the token is not shown');
    clock.advance(5_000);
    await eventually(() => messages.length === 1);
    await eventually(() => server.updates.length === 0);
    await stop();
  });
}

t.test('429 of a poll is kept to the second', async (t) => {
  const { server, clock, messages, run } = await openPlatform(t);
  server.answer('getUpdates', { code: 429, description: 'Too Many Requests: retry after 33', parameters: { retry_after: 33 } });
  server.push(messageOf({ text: 'Hello' }));
  const { stop } = run();
  await eventually(() => clock.isWaiting(33_000));
  clock.advance(33_000);
  await eventually(() => messages.length === 1);
  await stop();
});

t.test('an update that cannot be read holds up no other', async (t) => {
  const { server, messages, ctx, run } = await openPlatform(t);
  server.push({ message: { text: 'no chat', from: { id: 1 } } } as never);
  server.push({ unheard_of: {} } as never);
  server.push(messageOf({ text: 'Hello' }));
  const { stop } = run();
  await eventually(() => messages.length === 1 && server.updates.length === 0);
  t.equal(ctx.logs.filter(({ msg }) => /malformed/.test(String(msg))).length, 1);
  await stop();
});
