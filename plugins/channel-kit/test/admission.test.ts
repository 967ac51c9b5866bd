import { StateFull } from '@plugboard/kernel';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { keysOf, opened } from './open-channel.js';

const stranger = { sender: { id: 'eve', name: 'Eve\u0007' } };

t.test('CH-4 a stranger costs no session, no download and no model call, whatever it sends', async (t) => {
  const { platform, runtime, state, start, stop } = opened({ config: { allow: ['c1-ann'] } });
  platform.loadImage = async () => {
    throw new Error('it was downloaded');
  };
  await start();
  const message = (more: object) => platform.say('Hi', 'c1', { ...stranger, ...more });
  t.equal(await message({}), 'refused');
  t.equal(await message({ text: '/new' }), 'refused');
  t.equal(await message({ text: '/stop' }), 'refused');
  t.equal(await message({ press: 'approve K7M2QX' }), 'refused');
  t.equal(await message({ stops: true }), 'refused');
  t.equal(await message({ images: ['cat.png'] }), 'refused');
  t.equal(await message({ unsupported: 'a file' }), 'refused');
  await stop();
  t.strictSame(platform.attempts, []);
  t.equal(runtime.requests.length, 0);
  t.strictSame(await keysOf(state), ['kit/stopped']);
});

t.test('CH-4 a look-up that fails is no stranger: the platform delivers the message again', async (t) => {
  const { platform, state, start, stop, sent } = opened({ config: { pairing: true } });
  await start();
  const get = state.get.bind(state);
  state.get = () => Promise.reject(new Error('the disk is on fire'));
  await t.rejects(platform.say('Hi'), /disk is on fire/);
  state.get = get;
  await platform.say('Hi');
  await sent(1);
  await stop();
  t.match(platform.texts(), [/plugboard pair/]);
});

t.test('CH-6 what cannot be stored is not acknowledged', async (t) => {
  const { platform, state, start, stop, sent } = opened();
  await start();
  const change = state.change.bind(state);
  state.change = () => Promise.reject(new StateFull('transports.desk'));
  await t.rejects(platform.say('Hi', 'c1', { ids: ['one'] }), StateFull);
  state.change = change;
  t.equal(await platform.say('Hi', 'c1', { ids: ['one'] }), 'taken');
  t.equal(await platform.say('Hi', 'c1', { ids: ['two', 'one'] }), 'known');
  await sent(1);
  await stop();
  t.equal(platform.sent.length, 1);
});

t.test('CH-6 ids are known for three days', async (t) => {
  const { platform, clock, start, stop, sent } = opened();
  await start();
  const say = () => platform.say('Hi', 'c1', { ids: ['one'] });
  t.equal(await say(), 'taken');
  clock.advance(3 * 24 * 3_600_000 - 1);
  t.equal(await say(), 'known');
  clock.advance(1);
  t.equal(await say(), 'taken');
  await sent(2);
  await stop();
});

t.test('CH-7 in groups the agent answers when it is addressed; with `all` always, with `off` never', async (t) => {
  const receipts = async (groups: string) => {
    const { platform, start, stop } = opened({ config: { groups } });
    await start();
    const group = { isPrivate: false, isAddressed: false };
    const found = [
      await platform.say('Hi'),
      await platform.say('Hi', 'g', group),
      await platform.say('Hi', 'g', { ...group, isAddressed: true }),
    ];
    await stop();
    return found;
  };
  t.strictSame(await receipts('mention'), ['taken', 'ignored', 'taken']);
  t.strictSame(await receipts('all'), ['taken', 'taken', 'taken']);
  t.strictSame(await receipts('off'), ['taken', 'ignored', 'ignored']);
});

t.test('PA-1 a stranger is told a code, at most once a minute; in a group it is asked to write in private', async (t) => {
  const { platform, channel, clock, start, stop, sent, runtime } = opened({ config: { pairing: true } });
  await start();
  t.equal(await platform.say('Hi', 'p', stranger), 'refused');
  await sent(1);
  t.match(platform.texts(), [/plugboard pair [A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/]);
  const [first] = platform.texts();
  await platform.say('Hi again', 'p', stranger);
  clock.advance(60_000);
  await platform.say('Hello?', 'p', stranger);
  await sent(2);
  t.strictSame(platform.texts(), [first, first], 'the same code');
  const group = { ...stranger, isPrivate: false };
  await platform.say('Hi all', 'g', { ...group, isAddressed: false });
  await platform.say('Hi bot', 'g', group);
  await sent(3);
  t.match(platform.texts('g'), [/in private/]);
  t.equal((await channel.pairing.requests())[0]?.name, 'Eve', 'without what a terminal would obey');
  t.match(await channel.pairing.requests(), [{ sender: 'eve', expires: clock.now() - 60_000 + 3_600_000 }]);
  clock.advance(3_600_000);
  t.strictSame(await channel.pairing.requests(), [], 'it is good for an hour');
  await platform.say('Hi', 'p', stranger);
  await sent(4);
  t.not(platform.texts()[3], first);
  await stop();
  t.equal(runtime.requests.length, 0);
});

t.test('PA-2 at most 1,000 codes wait, and none pushes out another', async (t) => {
  const { platform, channel, clock, start, stop } = opened({ config: { pairing: true } });
  await start();
  for (let n = 0; n < 1_050; n++) {
    if (n === 900) clock.advance(60_000);
    await platform.say('Hi', `p${n}`, { sender: { id: `s${n}` } });
  }
  const codes = await channel.pairing.requests();
  t.equal(codes.length, 1_000);
  t.equal(codes[0]?.sender, 's0');
  t.equal(new Set(codes.map(({ code }) => code)).size, 1_000);
  await eventually(() => platform.sent.length === 1_000);
  await stop();
});

t.test('PA-3 an operator pairs by code, durably; the refused message was not kept', async (t) => {
  const first = opened({ config: { pairing: true } });
  await first.start();
  await first.platform.say('Before', 'p', stranger);
  await first.sent(1);
  const code = (await first.channel.pairing.requests())[0]?.code ?? '';
  t.equal(await first.channel.pairing.approve('AAAA-AAAA'), undefined);
  t.match(await first.channel.pairing.approve(code.toLowerCase().replace('-', '')), { sender: 'eve', since: first.clock.now() });
  t.equal(await first.channel.pairing.approve(code), undefined, 'a code is good once');
  await first.sent(2);
  t.equal(first.platform.texts()[1], 'You are paired now. Write to me.');
  await first.stop();
  t.equal(first.runtime.requests.length, 0);

  const second = opened({ config: { pairing: true }, state: first.state });
  await second.start();
  t.equal(await second.platform.say('After', 'p', { ...stranger, ids: ['after'] }), 'taken');
  await second.sent(1);
  t.match(await second.channel.pairing.paired(), [{ sender: 'eve' }]);
  t.equal(second.runtime.requests.length, 1);
  t.equal(await second.channel.pairing.remove('eve'), true);
  t.equal(await second.channel.pairing.remove('eve'), false);
  t.equal(await second.platform.say('Once more', 'p', { ...stranger, ids: ['more'] }), 'refused', 'from the next message on');
  await second.stop();
});

t.test('PA-4 `allow` needs no code, and alone decides without pairing', async (t) => {
  const receipts = async (config: Readonly<Record<string, unknown>>) => {
    const { platform, channel, start, stop } = opened({ config });
    await start();
    const found = [await platform.say('Hi', 'p', { sender: { id: 'ann' } }), await platform.say('Hi', 'p', stranger)];
    await stop();
    return [...found, (await channel.pairing.requests()).length];
  };
  t.strictSame(await receipts({}), ['taken', 'taken', 0]);
  t.strictSame(await receipts({ allow: ['ann'] }), ['taken', 'refused', 0]);
  t.strictSame(await receipts({ allow: ['ann'], pairing: true }), ['taken', 'refused', 1]);
});

t.test('100 messages of a chat wait, and the next but /stop is refused aloud', async (t) => {
  const { platform, runtime, start, stop, sent } = opened();
  await start();
  runtime.enqueue({ after: new Promise(() => {}) });
  await platform.say('running');
  await eventually(() => runtime.requests.length === 1);
  for (let n = 0; n < 100; n++) t.equal(await platform.say(`m${n}`), 'taken');
  t.equal(await platform.say('too many', 'c1', { ids: ['x'] }), 'full');
  t.equal(await platform.say('too many', 'c1', { ids: ['x'] }), 'full', 'it may be delivered again');
  await sent(1);
  t.match(platform.texts(), [/^Your message was not taken: 100 messages wait here/]);
  t.equal(await platform.say('Hi', 'c2'), 'taken');
  t.equal(await platform.say('/stop'), 'taken');
  await sent(3);
  t.strictSame(platform.texts('c1').slice(1), ['Stopped. 100 waiting messages were dropped.']);
  await stop();
});

t.test('what waits has a budget in bytes, for messages of any size', async (t) => {
  const { platform, runtime, state, start, stop, sent } = opened({ config: { waiting: '1mb' } });
  await start();
  const gate = Promise.withResolvers<void>();
  runtime.enqueue({ after: gate.promise, text: 'x'.repeat(150_000) });
  const long = '“quotes”\n'.repeat(20_000);
  t.equal(await platform.say(long), 'taken');
  await eventually(() => runtime.requests.length === 1);
  t.equal(runtime.requests[0]?.messages[0]?.content, long, 'pieces come together again');
  const receipts: string[] = [];
  for (let n = 0; n < 6; n++) receipts.push(await platform.say(long));
  t.ok(receipts.includes('taken') && receipts.at(-1) === 'full', receipts.join());
  gate.resolve();
  await sent(150);
  await eventually(() => runtime.requests.length === 1 + receipts.filter((one) => one === 'taken').length);
  await eventually(async () => (await keysOf(state)).every((key) => key.startsWith('kit/id/')));
  t.equal(await platform.say(long), 'taken', 'what was done is given back');
  await stop();
});
