/** Several servers over one store. */
import type { HostView } from '@plugboard/kernel';
import { MemoryState } from '@plugboard/store-memory';
import { eventually, ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { keysOf, OneServer, type OpenOptions, opened } from './open-channel.js';
import { ScriptedPlatform } from './scripted-platform.js';

/** Two servers: the first one has the platform. */
async function twoServers(config: OpenOptions['config'] = {}, isPushed = false, host?: HostView) {
  const clock = new ManualClock();
  const shared = { clock, config, state: new MemoryState(clock), ids: new SequentialIds() };
  const open = (host?: HostView) => {
    const platform = new ScriptedPlatform({ tellsFull: isPushed });
    platform.receivesAnywhere = isPushed;
    const server = new OneServer();
    return { server, ...opened({ ...shared, platform, server, ...(host && { host }) }) };
  };
  const [one, two] = [open(host), open()];
  await one.start();
  await isIn(one, 'connected');
  await two.start();
  if (isPushed) await eventually(() => two.channel.status().account);
  return { one, two, clock, state: shared.state };
}

type Opened = Awaited<ReturnType<typeof twoServers>>['one'];
const isIn = ({ channel }: Opened, state: string) => eventually(() => channel.status().state === state);
const asked = ({ runtime }: Opened) => runtime.requests.map(({ messages }) => messages.at(-1)?.content);

t.test('CH-10 one of two servers has the platform, and the other takes over when it stops', async (t) => {
  const { one, two, clock } = await twoServers();
  t.match(two.channel.status(), { platform: 'scripted', state: 'standby', waiting: 0, unsent: 0, failed: 0 });
  t.match(two.channel.health(), { state: 'ok' });
  t.equal(two.platform.runs, 0);
  one.runtime.enqueue({ after: new Promise(() => {}) });
  await one.platform.say('A long one');
  await one.platform.say('Then this');
  one.platform.results.push({ kind: 'later', reason: 'it is out' });
  await one.platform.say('/help', 'c2');
  await eventually(() => one.runtime.requests.length === 1 && one.channel.status().unsent === 1);
  await t.rejects(one.stop(AbortSignal.abort()), /1 answer was cut/);
  t.equal(one.channel.status().state, 'connecting');
  await isIn(two, 'connected');
  clock.advance(60_000);
  await two.sent(3);
  t.equal(two.platform.texts('c1').length, 2);
  t.match(two.platform.texts('c2'), [/\/new begins/]);
  t.strictSame(one.platform.texts(), []);
  t.strictSame(asked(two), ['A long one', 'Then this']);
  await two.stop();
});

t.test('CH-10 a server that is asked to stop gives the platform away when its turns have ended, before its stop', async (t) => {
  const asksToStop = new AbortController();
  const host = { version: '0.1.0', phase: 'running', entries: () => [], literal: () => undefined } as const;
  const { one, two } = await twoServers({}, false, { ...host, stopRequested: asksToStop.signal });
  const gate = Promise.withResolvers<void>();
  one.runtime.enqueue({ after: gate.promise, text: 'The whole story.' });
  await one.platform.say('A long one');
  await one.platform.say('Then this');
  await eventually(() => one.runtime.requests.length === 1);
  asksToStop.abort();
  await t.rejects(one.platform.say('Too late'), { code: 'draining' });
  t.equal(two.channel.status().state, 'standby');
  gate.resolve();
  await isIn(two, 'connected');
  await eventually(() => one.platform.sent.length + two.platform.sent.length === 2);
  t.strictSame(asked(one), ['A long one']);
  t.strictSame(asked(two), ['Then this']);
  await one.stop();
  await two.stop();
});

t.test('CH-10 a server that has lost its lease ends its turns and sends nothing, and may have its turn again', async (t) => {
  const { one, two, clock, state } = await twoServers();
  one.runtime.enqueue({ after: new Promise(() => {}) });
  one.platform.results.push({ kind: 'later', reason: 'it is out' });
  await one.platform.say('A long one');
  await one.platform.say('/help', 'c2');
  await eventually(() => one.runtime.requests.length === 1 && one.channel.status().unsent === 1);
  await one.server.lose();
  t.match(one.channel.status(), { waiting: 0, unsent: 0 });
  await isIn(one, 'standby');
  t.match(one.logs.at(-1)?.msg, /has lost its lease/);
  await isIn(two, 'connected');
  clock.advance(60_000);
  await two.sent(2);
  t.strictSame(one.platform.texts(), []);
  t.equal(one.platform.attempts.length, 1);
  await two.stop();
  await isIn(one, 'connected');
  t.equal(one.platform.runs, 2);
  one.runtime.enqueue({ text: 'Hello again.' });
  await one.platform.say('Hi');
  await one.sent(1);
  await one.stop();
  t.ok((await keysOf(state)).every((key) => /^kit\/(id\/|chat\/|stopped)/.test(key)));
});

t.test('CH-10 what a server on standby gets by HTTP runs once, at the server that has the platform', async (t) => {
  const { one, two, clock, state } = await twoServers({ pairing: true, allow: ['c1-ann'] }, true);
  t.equal(two.channel.status().state, 'standby', 'although it is connected');
  const look = async () => {
    await eventually(() => clock.pending > 0);
    clock.advance(1_000);
  };
  t.equal(await two.platform.say('Hi'), 'taken');
  t.equal(await one.platform.say('Hi'), 'taken', 'the same delivery, again');
  const group = { isPrivate: false, isAddressed: false };
  t.equal(await two.platform.say('Not for you', 'g', { ...group, ids: ['g'] }), 'ignored');
  t.equal(await two.platform.say('Let me in', 'p', { ids: ['p'], sender: { id: 'eve' } }), 'refused');
  await two.platform.inbox.receive([], { offset: 7 });
  await look();
  await one.sent(2);
  t.equal(one.runtime.requests.length, 1);
  t.match(one.platform.texts('p'), [/plugboard pair/]);
  t.strictSame(two.platform.sent, []);
  t.equal(await state.get('transports.desk', 'offset'), '7');
  const [request] = (await two.channel.pairing.requests()) ?? [];
  t.equal(await two.channel.pairing.approve('AAAA-AAAA'), undefined);
  t.match(await two.channel.pairing.approve(request?.code ?? ''), { sender: 'eve' });
  await look();
  await one.sent(3);
  t.match(one.platform.texts('p'), [/./, /You are paired now/]);
  t.match(await two.channel.pairing.paired(), [{ sender: 'eve' }]);
  t.equal(await two.channel.pairing.remove('eve'), true);
  t.strictSame(
    (await keysOf(state)).filter((key) => key.startsWith('kit/relayed')),
    [],
  );
  await two.stop();
  await one.stop();
});

t.test('CH-10 a queue that is full refuses by a notice what another server took', async (t) => {
  const { one, two, clock } = await twoServers({}, true);
  one.runtime.enqueue({ after: new Promise(() => {}) });
  for (let n = 0; n < 101; n++) await one.platform.say('Wait', 'c1', { ids: [`own${n}`] });
  t.equal(await one.platform.say('No more', 'c1', { ids: ['own'] }), 'full');
  t.equal(await two.platform.say('No more'), 'taken');
  await eventually(() => clock.pending > 0);
  clock.advance(1_000);
  await one.sent(1);
  t.match(one.platform.texts(), [/was not taken: 100 messages wait/]);
  await two.stop();
  await t.rejects(one.stop(AbortSignal.abort()), /cut/);
});

t.test('CH-10 what waits for the server that has the platform has limits', async (t) => {
  const { one, two } = await twoServers({ waiting: '1mb' }, true);
  const large = 'x'.repeat(600_000);
  t.equal(await two.platform.say(large), 'taken');
  const error = { code: 'overloaded', message: /transports\.desk\.waiting` \(1mb\)/ };
  await t.rejects(two.platform.say(large), error);
  for (let n = 0; n < 999; n++) await two.platform.say('Hi', `c${n}`, { ids: [`i${n}`] });
  await t.rejects(two.platform.say('Hi'), error);
  await one.stop();
  await isIn(two, 'standby');
  await two.stop();
});

t.test('CH-2 an operator at a server on standby sends failed replies again, or drops them', async (t) => {
  const { one, two, clock, state } = await twoServers();
  const failing = { kind: 'never', reason: 'it is gone' } as const;
  one.platform.results.push(failing, failing);
  await one.platform.say('/help');
  await one.platform.say('/help', 'c2');
  await eventually(() => one.channel.status().failed === 2);
  const [again, dropped] = await two.channel.outbox.failed();
  t.equal(await two.channel.outbox.send('msg_unknown'), false);
  t.equal(await two.channel.outbox.send(again?.id ?? ''), true);
  t.equal(await two.channel.outbox.drop(dropped?.id ?? ''), true);
  t.strictSame(two.channel.outbox.sendWaiting(), []);
  await eventually(() => clock.pending > 0);
  clock.advance(1_000);
  await one.sent(1);
  await eventually(async () => (await keysOf(state)).every((key) => !/^kit\/(failed|relayed|out)/.test(key)));
  await two.stop();
  await one.stop();
});

t.test('CH-10 a store that fails keeps a server on standby, and it tries again', async (t) => {
  const { one, two, clock, state } = await twoServers();
  const broken = new Error('no database');
  const list = state.list.bind(state);
  await two.stop();
  const server = new OneServer();
  server.failures.push(broken, broken);
  const { channel, start, stop, logs } = opened({ clock, state, server });
  await start();
  await one.stop();
  const retried = async (ms: number) => {
    await eventually(() => clock.pending === 1);
    t.equal(channel.status().state, 'standby');
    clock.advance(ms);
  };
  await retried(1_000);
  state.list = () => Promise.reject(broken);
  await retried(2_000);
  await retried(4_000);
  await eventually(() => clock.pending === 1);
  state.list = list;
  await retried(8_000);
  await eventually(() => channel.status().state === 'connected');
  t.equal(logs.length, 1);
  t.match(logs[0], { msg: /on standby, because the store failed/, err: { message: 'no database' } });
  state.list = () => Promise.reject(broken);
  await eventually(() => clock.pending === 1);
  for (let n = 0; n < 2; n++) {
    clock.advance(1_000);
    await eventually(() => clock.pending === 1);
  }
  t.equal(logs.length, 2);
  t.match(logs[1]?.msg, /what other servers took waits/);
  state.list = list;
  await stop();
});
