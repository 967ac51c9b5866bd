import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { keysOf, opened } from './open-channel.js';
import { ScriptedPlatform } from './scripted-platform.js';

t.test('CH-1 a reply is sent until the platform takes it, after a crash too, without another model call', async (t) => {
  const platform = new ScriptedPlatform();
  platform.limit = 4;
  const first = opened({ platform });
  platform.results.push({ kind: 'sent', kept: { ts: 1 } }, new Error('connection reset'));
  first.runtime.enqueue({ text: 'onetwothree!' });
  await first.start();
  await platform.say('Hi');
  await eventually(() => first.logs.length === 1 && first.clock.pending === 1);
  t.match(platform.attempts, [
    { index: 0, count: 3, text: 'onet', mayHaveArrived: false, kept: undefined },
    { index: 1, count: 3, text: 'woth', mayHaveArrived: false, kept: { ts: 1 } },
  ]);

  // The process is killed: nothing of the first life goes on.
  const second = opened({ state: first.state });
  second.platform.limit = 4;
  await second.start();
  await second.sent(2);
  await eventually(() => second.channel.status().unsent === 0);
  await second.stop();
  t.match(second.platform.sent, [
    { index: 1, text: 'woth', mayHaveArrived: true, kept: { ts: 1 } },
    { index: 2, text: 'ree!', mayHaveArrived: false },
  ]);
  t.equal(new Set([...platform.sent, ...second.platform.sent].map(({ id }) => id)).size, 1, 'one id');
  t.equal(second.runtime.requests.length, 0);
  t.strictSame(
    (await keysOf(second.state)).filter((key) => !key.startsWith('kit/id/')),
    ['kit/stopped'],
  );
});

t.test('CH-2 a reply that fails for good is listed, sent again from the part that failed, or dropped', async (t) => {
  const { platform, channel, runtime, start, stop, sent, state, clock } = opened();
  platform.limit = 4;
  platform.results.push({ kind: 'sent', kept: 'one' }, { kind: 'never', reason: 'the bot was blocked' });
  runtime.enqueue({ text: 'onetwo' }, { text: 'x'.repeat(30_000) });
  await start();
  await platform.say('Hi');
  await eventually(() => channel.status().failed === 1);
  const [failed] = await channel.outbox.failed();
  t.match(failed, { chat: 'c1', text: 'onetwo', reason: 'the bot was blocked', attempts: 1, failedAt: clock.now() });
  const id = String(failed?.id);
  t.equal(await channel.outbox.send(id), true);
  t.equal(await channel.outbox.send(id), false);
  await sent(2);
  t.match(platform.sent[1], { index: 1, text: 'wo', kept: 'one', mayHaveArrived: true });

  platform.limit = 50_000;
  platform.results.push({ kind: 'never', reason: 'too long' });
  await platform.say('Hi');
  await eventually(() => channel.status().failed === 1);
  const [long] = await channel.outbox.failed();
  t.equal(long?.text.length, 30_000);
  t.equal(await channel.outbox.drop(String(long?.id)), true);
  t.equal(await channel.outbox.drop(String(long?.id)), false);
  t.match(channel.status(), { failed: 0, unsent: 0, waiting: 0 });
  t.ok((await keysOf(state)).every((key) => key.startsWith('kit/id/')));

  platform.results.push({ kind: 'never', reason: 'blocked' });
  await platform.say('Hi');
  await eventually(() => channel.status().failed === 1);
  await stop();
  clock.advance(30 * 24 * 3_600_000);
  t.equal(channel.status().failed, 0, 'the list keeps it for 30 days');
  t.strictSame(await channel.outbox.failed(), []);
});

t.test('what the platform asks to wait is kept to the second, for the chat alone, also after a restart', async (t) => {
  const first = opened();
  first.platform.results.push({ kind: 'later', reason: 'flood', after: 33_000 });
  await first.start();
  await first.platform.say('Hi');
  await eventually(() => first.clock.pending === 1);
  await first.platform.say('Hi again');
  await first.platform.say('Hi', 'c2');
  await first.sent(1);
  t.strictSame(
    first.platform.sent.map(({ chat }) => chat),
    ['c2'],
  );
  await first.stop();

  const second = opened({ state: first.state, clock: new ManualClock(first.clock.now()) });
  await second.start();
  await eventually(() => second.clock.pending === 1);
  second.clock.advance(32_999);
  t.equal(second.platform.attempts.length, 0);
  second.clock.advance(1);
  await second.sent(2);
  await second.stop();
});

t.test('later replies of a chat wait ten minutes at most for one that is not taken', async (t) => {
  const { platform, clock, start, stop, sent, channel } = opened();
  const send = platform.send.bind(platform);
  platform.send = async (message, signal) =>
    message.replyTo === 'poison' ? { kind: 'later', reason: 'error 500' } : send(message, signal);
  await start();
  await platform.say('Hi', 'c1', { id: 'poison' });
  await platform.say('Hi again');
  await eventually(() => channel.status().unsent === 2 && clock.pending === 1);
  for (let passed = 0; platform.sent.length === 0 && passed < 3_600_000; passed += 10_000) {
    clock.advance(10_000);
    await eventually(() => clock.pending > 0 || platform.sent.length > 0);
    if (passed < 590_000) t.equal(platform.sent.length, 0);
  }
  await sent(1);
  t.equal(channel.status().unsent, 1, 'it is tried on');
  await stop();
});

t.test('when the platform is reached again, what waits is tried at once', async (t) => {
  const { platform, clock, channel, start, stop, sent } = opened();
  platform.results.push(...Array.from({ length: 5 }, () => new Error('unreachable')));
  await start();
  await platform.say('Hi');
  for (let n = 1; n <= 5; n++) {
    await eventually(() => platform.attempts.length === n && clock.pending === 1);
    if (n < 5) clock.advance(60_000);
  }
  channel.failed('unreachable');
  channel.connected();
  await sent(1);
  t.equal(platform.attempts.length, 6);
  await stop();
});

t.test('a platform that never answers is given up after a minute, and after two seconds of a stop', async (t) => {
  const { platform, clock, start, stop, logs } = opened();
  platform.results.push('nothing', 'nothing');
  await start();
  await platform.say('Hi');
  await eventually(() => platform.attempts.length === 1);
  clock.advance(60_000);
  await eventually(() => logs.length === 1);
  t.match(logs[0], { reason: 'no answer in 60 s' });
  await eventually(() => clock.pending === 1);
  clock.advance(2_200);
  await eventually(() => platform.attempts.length === 2);
  const stopped = stop();
  await eventually(() => clock.pending === 2);
  clock.advance(2_000);
  await stopped;
});

t.test('a store that fails while a reply is sent loses nothing', async (t) => {
  const { platform, state, clock, channel, start, stop, logs } = opened();
  await start();
  const change = state.change.bind(state);
  const fails = () => {
    state.change = () => Promise.reject(new Error('disk full'));
  };
  platform.send = async (message) => {
    platform.sent.push(message);
    if (platform.sent.length === 1) fails();
    else state.change = change;
    return { kind: 'sent' };
  };
  await platform.say('Hi');
  await eventually(() => logs.length === 1 && clock.pending === 1);
  clock.advance(1_000);
  await eventually(() => channel.status().unsent === 0);
  await stop();
  t.strictSame(
    platform.sent.map(({ mayHaveArrived }) => mayHaveArrived),
    [false, true],
  );
});

t.test('a platform cannot ask for no wait, nor for an endless one', async (t) => {
  const { platform, clock, channel, start, stop } = opened();
  platform.results.push({ kind: 'later', reason: 'flood', after: 0 }, { kind: 'later', reason: 'flood', after: 1e12 });
  await start();
  await platform.say('Hi');
  await eventually(() => platform.attempts.length === 1 && clock.pending === 1);
  clock.advance(999);
  t.equal(clock.pending, 1);
  clock.advance(1);
  await eventually(() => platform.attempts.length === 2 && clock.pending === 1);
  platform.results.push({ kind: 'later', reason: 'flood', after: 1e12 });
  clock.advance(24 * 3_600_000);
  await eventually(() => channel.status().failed === 1);
  t.match(await channel.outbox.failed(), [{ reason: 'tried for a day: flood', attempts: 3 }]);
  await stop();
});

t.test('while replies fail, the status says why, and the log has one line for a row of them, after a restart too', async (t) => {
  const refused = () =>
    new TypeError('fetch failed', { cause: Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' }) });
  const first = opened();
  first.platform.results.push(refused(), refused());
  await first.start();
  await first.platform.say('Hi');
  await eventually(() => first.clock.pending === 1 && first.channel.status().reason !== undefined);
  await first.platform.say('Hi again');
  await eventually(() => first.channel.status().unsent === 2);
  const next = new Date(first.clock.now() + 2_000).toISOString().slice(11, 19);
  t.match(first.channel.status(), { state: 'connected', unsent: 2 });
  t.equal(first.channel.status().reason, `2 replies wait: fetch failed: ECONNREFUSED; next attempt ${next}Z`);
  t.match(first.channel.health(), { state: 'ok' });
  first.clock.advance(2_500);
  await eventually(() => first.platform.attempts.length === 2 && first.clock.pending === 1);
  const line = { msg: 'the platform did not take a reply; it is tried again', reason: 'fetch failed: ECONNREFUSED' };
  t.match(first.logs, [line]);
  t.equal(first.logs.length, 1);

  const second = opened({ state: first.state, clock: new ManualClock(first.clock.now()) });
  second.platform.results.push(refused());
  await second.start();
  await eventually(() => second.logs.length === 1);
  t.match(second.logs, [line]);
  await eventually(() => second.clock.pending === 1);
  second.clock.advance(60_000);
  await second.sent(2);
  await eventually(() => second.channel.status().unsent === 0);
  t.equal(second.channel.status().reason, undefined);
  await second.stop();
});

t.test('a reply that is taken wakes the other chats, and an operator all, except those that the platform paused', async (t) => {
  const { platform, clock, channel, start, stop, sent } = opened();
  const down = new Set(['c1', 'c2', 'c3']);
  const send = platform.send.bind(platform);
  platform.send = async (message, signal) => {
    if (!down.has(message.chat)) return send(message, signal);
    platform.attempts.push(message);
    return { kind: 'later', reason: 'down', ...(message.chat === 'c3' && { after: 3_600_000 }) };
  };
  const attemptsOf = (chat: string) => platform.attempts.filter((one) => one.chat === chat).length;
  await start();
  for (const chat of down) await platform.say('Hi', chat);
  for (let n = 1; n <= 6; n++) {
    await eventually(() => attemptsOf('c1') === n && attemptsOf('c2') === n && clock.pending === 3);
    if (n < 6) clock.advance(100_000);
  }
  down.clear();
  await platform.say('Hi', 'c4');
  await sent(3);
  t.strictSame(platform.sent.map(({ chat }) => chat).toSorted(), ['c1', 'c2', 'c4']);

  // A chat that fails by itself is woken once a minute at most, or by an operator.
  down.add('c5');
  await platform.say('Hi', 'c5');
  await eventually(() => attemptsOf('c5') === 1 && clock.pending === 2);
  for (const text of ['one', 'two', 'three']) {
    const before = platform.sent.length;
    await platform.say(text, 'c4');
    await sent(before + 1);
  }
  await eventually(() => attemptsOf('c5') === 2 && clock.pending === 2);
  down.clear();
  t.equal(channel.outbox.sendWaiting().length, 1);
  await eventually(() => channel.status().unsent === 1);
  t.equal(attemptsOf('c3'), 1, 'the platform said how long to wait');
  t.match(channel.status().reason, /^1 reply waits: down; next attempt /);
  await stop();
});
