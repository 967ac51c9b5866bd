import { eventually } from '@plugboard/testing';
import t from 'tap';
import { reasonOf } from '../src/index.js';
import { opened } from './open-channel.js';

t.test('CH-9 a platform that is not reached fails no start: one line, not ready, and it is tried on', async (t) => {
  const { platform, channel, clock, start, stop, logs } = opened();
  let isUp = false;
  platform.running = async (inbox, signal) => {
    if (!isUp) throw new Error('the token is refused; correct token');
    inbox.connected('@bot');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  };
  t.match(channel.status(), { platform: 'scripted', state: 'connecting' });
  await start();
  await eventually(() => channel.status().state === 'failed');
  t.match(channel.status(), { reason: 'the token is refused; correct token', since: clock.now() });
  t.match(channel.health(), { state: 'failed', reason: /correct token/ });
  for (const wait of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    await eventually(() => clock.pending === 1);
    const { runs } = platform;
    clock.advance(wait - 1);
    t.equal(platform.runs, runs);
    clock.advance(1);
    await eventually(() => platform.runs === runs + 1);
  }
  t.equal(logs.length, 1);
  t.match(logs[0], { level: 'warn', msg: /not reached, and is tried again: the token is refused; correct token/ });
  isUp = true;
  await eventually(() => clock.pending === 1);
  clock.advance(60_000);
  await eventually(() => channel.status().state === 'connected');
  t.match(channel.status(), { account: '@bot', reason: undefined, since: clock.now() });
  t.strictSame(channel.health(), { state: 'ok', reason: undefined });
  t.match(logs[1], { level: 'info', msg: /reached again/ });
  t.equal(logs.length, 2);
  await stop();
});

t.test('CH-9 an entry that was connected stays ready for a minute without its platform', async (t) => {
  const { channel, clock, start, stop } = opened();
  await start();
  await eventually(() => channel.status().state === 'connected');
  channel.failed('it closed the socket');
  clock.advance(59_999);
  channel.failed('it closed the socket again');
  t.equal(channel.status().state, 'connected');
  t.match(channel.status().reason, /^lost at \d\d:\d\d:\d\dZ, failed if that lasts 60 s: it closed the socket again$/);
  clock.advance(1);
  t.match(channel.status(), { state: 'failed', reason: 'it closed the socket again' });
  channel.connected();
  t.equal(channel.status().state, 'connected');
  channel.failed('it closed the socket');
  channel.connected();
  clock.advance(60_000);
  t.equal(channel.status().state, 'connected', 'a short break is none');
  await stop();
});

t.test('a platform that ends by itself is run again', async (t) => {
  const { platform, clock, start, stop, logs } = opened();
  platform.running = async (inbox) => inbox.connected();
  await start();
  for (let n = 1; n <= 3; n++) {
    await eventually(() => platform.runs === n && clock.pending === 2);
    clock.advance(1_000);
  }
  t.match(logs[0]?.msg, /it ended/);
  await stop();
});

t.test('a reason has the deepest cause of an error', async (t) => {
  const reset = Object.assign(new Error('other side closed'), { code: 'UND_ERR_SOCKET' });
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:9'), { code: 'ECONNREFUSED' });
  t.equal(reasonOf(new TypeError('fetch failed', { cause: refused })), `fetch failed: ${refused.message}`);
  t.equal(reasonOf(new TypeError('fetch failed', { cause: reset })), 'fetch failed: other side closed (UND_ERR_SOCKET)');
  t.equal(reasonOf(new AggregateError([refused, reset])), refused.message);
  t.equal(reasonOf(new Error('outer', { cause: new Error('inner', { cause: refused }) })), `outer: ${refused.message}`);
  t.equal(reasonOf('closed'), 'closed');
});
