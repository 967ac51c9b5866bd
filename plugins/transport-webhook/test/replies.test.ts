import { AgentRuntimes } from '@plugboard/kernel';
import { Channels } from '@plugboard/kernel/contracts';
import { eventually, ManualClock, ScriptedRuntime, systemClock, testContext } from '@plugboard/testing';
import { HttpRoutes } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { ReplyAddresses } from '../src/reply-address.js';
import { Signatures } from '../src/signatures.js';
import { WebhookPlatform } from '../src/webhook-platform.js';
import { Receiver, SECRET } from './receiver.js';

/** The entry alone, at a time that the test moves. The package that verifies knows the real one. */
async function open(t: Test, config: object = {}) {
  const receiver = await Receiver.start(t);
  const clock = new ManualClock(Date.now());
  const ctx = testContext(plugin, {
    entry: 'transports.desk',
    config: { secret: SECRET, replyUrl: receiver.url, allowPrivate: ['127.0.0.1'], agent: 'helper', ...config },
    check: { entries: (section) => (section === 'agents' ? ['helper'] : []) },
    clock,
  });
  const runtime = new ScriptedRuntime({ agents: ['helper'], state: ctx.stateStore });
  ctx.provide(AgentRuntimes, runtime);
  const { signal } = new AbortController();
  await ctx.lifecycle.start?.(signal);
  t.teardown(() => ctx.lifecycle.stop?.(AbortSignal.abort()));
  const route = ctx.contributed(HttpRoutes);
  const say = (id: string, text = 'Hello', chat = 'c') => {
    const body = Buffer.from(JSON.stringify({ chat, sender: 'ann', text }));
    const headers = receiver.sign(id, body.toString(), new Date(clock.now()));
    return route.handle(testHttpRequest({ method: 'POST', path: route.path, headers, body }));
  };
  const channel = ctx.contributed(Channels);
  return { receiver, clock, runtime, say, channel, logs: ctx.logs, stop: () => ctx.lifecycle.stop?.(signal) };
}

t.test('WH-2 a reply is tried again after 2 s, then twice as long, with the same id and body', async (t) => {
  const { receiver, clock, say, channel } = await open(t);
  receiver.answers.push({ status: 500 }, { status: 302, headers: { location: '/elsewhere' } }, { status: 404 }, { status: 429 });
  await say('one');
  for (const [attempts, wait] of [2_000, 4_000, 8_000, 16_000].entries()) {
    await eventually(() => receiver.attempts.length === attempts + 1);
    await eventually(() => clock.pending === 1);
    clock.advance(wait * 0.89);
    t.equal(clock.pending, 1, `not before ${wait} ms less 10 %`);
    clock.advance(wait * 0.22);
  }
  await eventually(() => receiver.replies.length === 1);
  t.equal(receiver.attempts.length, 5);
  t.equal(new Set(receiver.attempts.map(({ id, text }) => `${id} ${text}`)).size, 1);
  t.ok(new Set(receiver.attempts.map(({ headers }) => headers['webhook-timestamp'])).size > 3, 'each attempt is signed anew');
  t.strictSame(receiver.forged, []);
  await eventually(() => channel.status().unsent === 0);
});

t.test('WH-2 Retry-After is kept, also as a date, and nothing else is sent to the chat meanwhile', async (t) => {
  const { receiver, clock, runtime, say, logs } = await open(t);
  const start = clock.now();
  const date = new Date(start + 40_000).toUTCString();
  receiver.answers.push({ status: 503, headers: { 'retry-after': '33' } });
  await say('one');
  await eventually(() => logs.length === 1 && clock.pending === 1);
  receiver.answers.push({ status: 204 }, { status: 503, headers: { 'retry-after': date } });
  await say('two', 'Hello', 'another chat');
  await eventually(() => receiver.replies.length === 1);
  t.equal(receiver.replies[0]?.body.chat, 'another chat', 'other chats go on');
  await say('three');
  await eventually(() => runtime.requests.length === 3 && clock.pending === 1);
  clock.advance(32_999);
  t.equal(clock.pending, 1, 'still waits');
  clock.advance(1);
  await eventually(() => receiver.attempts.length === 3);
  t.equal(receiver.attempts[2]?.body.reply_to, 'one');
  await eventually(() => clock.pending === 1);
  clock.advance(Date.parse(date) - clock.now() - 1);
  t.equal(clock.pending, 1, 'still waits');
  clock.advance(1);
  await eventually(() => receiver.replies.length === 3);
  t.strictSame(
    receiver.replies.map(({ body }) => body.reply_to),
    ['two', 'one', 'three'],
  );
});

t.test('WH-2 CH-2 410 fails for good: an operator sees the reply, and sends it again', async (t) => {
  const { receiver, say, channel, logs } = await open(t);
  receiver.answers.push({ status: 410 });
  await say('one');
  await say('two');
  await eventually(() => receiver.replies.length === 1 && channel.status().failed === 1);
  t.equal(receiver.replies[0]?.body.reply_to, 'two', 'the later replies go on');
  const [failed] = (await channel.outbox?.failed()) ?? [];
  t.match(failed, { id: /^msg_/, chat: 'c', text: 'ok', reason: /answered 410/, attempts: 1 });
  t.match(logs.at(-1)?.msg, /failed for good; `plugboard outbox`/);
  t.equal(await channel.outbox?.send('msg_unknown'), false);
  t.equal(await channel.outbox?.send(String(failed?.id)), true);
  await eventually(() => receiver.replies.length === 2);
  t.equal(receiver.replies[1]?.id, failed?.id);
  t.equal(channel.status().failed, 0);
});

t.test('WH-2 without an answer in 15 s it is tried again', async (t) => {
  const { receiver, clock, say, logs } = await open(t);
  receiver.answers.push('nothing');
  await say('one');
  await eventually(() => receiver.attempts.length === 1);
  clock.advance(15_000);
  await eventually(() => logs.length === 1 && clock.pending === 1);
  t.match(logs[0]?.reason, /no answer in 15 s/);
  clock.advance(2_200);
  await eventually(() => receiver.replies.length === 1);
  t.equal(receiver.attempts.length, 2);
});

t.test('WH-2 after a day of tries a reply is given up', async (t) => {
  const { receiver, clock, say, channel } = await open(t);
  receiver.stop();
  await say('one');
  for (let hours = 0; hours < 60 && channel.status().failed === 0; hours++) {
    const { length } = (await channel.outbox?.failed()) ?? [];
    if (length === 0) await eventually(() => clock.pending === 1 || channel.status().failed === 1);
    clock.advance(3_600_000 * 1.11);
  }
  await eventually(() => channel.status().failed === 1);
  const [failed] = (await channel.outbox?.failed()) ?? [];
  t.match(failed, { reason: /^tried for a day: 127\.0\.0\.1 is not reached/ });
});

t.test('S-07 WH-2 no reply goes to a private address that a name leads to', async (t) => {
  const receiver = await Receiver.start(t);
  const sendTo = (host: string, allowPrivate: readonly string[]) => {
    const url = new URL(receiver.url);
    url.hostname = host;
    const signatures = new Signatures([SECRET]);
    const platform = new WebhookPlatform({ url, addresses: new ReplyAddresses(allowPrivate), signatures, clock: systemClock });
    const message = { id: 'msg_1', index: 0, count: 1, chat: 'c', to: { chat: 'c' }, text: 'Hi', at: 0, mayHaveArrived: false };
    return platform.send({ ...message, kind: 'reply' }, new AbortController().signal);
  };
  for (const host of ['localhost', '127.0.0.1'])
    t.match(await sendTo(host, ['10.0.0.7']), { kind: 'later', reason: /its address is private/ });
  t.equal(receiver.attempts.length, 0);
  t.match(await sendTo('localhost', ['127.0.0.0/8']), { kind: 'sent' });
});

t.test('WH-1 the queue of a chat holds 100 messages; the next one is refused until there is room', async (t) => {
  const { receiver, runtime, say } = await open(t);
  const gate = Promise.withResolvers<void>();
  runtime.enqueue({ text: 'First.', after: gate.promise });
  await say('running');
  await eventually(() => runtime.requests.length === 1);
  for (let n = 1; n <= 100; n++) t.match(await say(`m${n}`), { status: 202 });
  await t.rejects(async () => say('m101'), { status: 429, code: 'chat_full', headers: { 'retry-after': '5' } });
  t.match(await say('elsewhere', 'Hello', 'another chat'), { status: 202 });
  gate.resolve();
  await eventually(() => receiver.replies.length === 102);
  t.match(await say('m101'), { status: 202 });
  await eventually(() => receiver.replies.length === 103);
});

t.test('WH-1 a server that stops takes nothing more', async (t) => {
  const { say, stop } = await open(t);
  await stop();
  await t.rejects(async () => say('one'), { status: 503, code: 'stopping' });
});
