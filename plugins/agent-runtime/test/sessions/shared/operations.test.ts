import { conversationId, OPEN } from '@plugboard/kernel/contracts';
import t from 'tap';
import { accountOf, answerWith, endOf, ScriptedModel, textOfEvents, user } from '../../harness.js';
import { ID, inLine, stored, twoServers } from './support.js';

const CONVERSATION = conversationId(ID);
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    ({ code }) => code,
  );

t.test('PG-18 cancel ends the turns of all servers and is answered when they have ended', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const waiting = one.send('b');
  await inLine(memory, 2);
  const own = two.send('c');
  await inLine(memory, 3);
  const cancelled = two.runtime.conversations.cancel(CONVERSATION, OPEN, accountOf());
  for (const turn of [first, waiting, own]) t.match(endOf(await turn), { failure: { code: 'turn_cancelled' } });
  t.match(await cancelled, { status: 'idle', turns: 0 });
  t.equal(memory.rows.length, 0);
  t.strictSame(await stored(memory), []);
});

t.test('PG-18 R-078 delete ends the turns of all servers, and nothing of them comes back', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  (await call(1)).answer('one');
  await first;
  const second = one.send('b');
  await call(2);
  const deleted = two.runtime.conversations.delete(CONVERSATION, OPEN);
  t.match(endOf(await second), { failure: { code: 'session_deleted' } });
  await deleted;
  t.equal(memory.rows.length, 0);
  t.strictSame(await stored(memory), []);
  t.equal(await codeOf(one.runtime.conversations.get(CONVERSATION, OPEN)), 'conversation_not_found');
  const third = one.send('c');
  (await call(3)).answer('new');
  await third;
  t.strictSame(await stored(memory), ['c', 'new'], 'its cache is not taken for the new session');
});

t.test('PG-18 a session whose first turn runs elsewhere can be deleted', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  await two.runtime.conversations.delete(CONVERSATION, OPEN);
  t.match(endOf(await first), { failure: { code: 'session_deleted' } });
  t.equal(memory.rows.length, 0);
});

t.test('PG-20 C-192 lists and status show the turns of other servers', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const { conversations } = two.runtime;
  const list = () => conversations.list({ limit: 10, order: 'desc' }, OPEN, accountOf());
  const first = one.send('a');
  await call(1);
  t.match(await list(), [{ id: ID, status: 'running', turns: 0, title: 'a' }]);
  t.match(await conversations.get(CONVERSATION, OPEN), { status: 'running' });
  t.match(await conversations.turns(CONVERSATION, { limit: 1, order: 'asc' }, OPEN, accountOf()), { turns: [] });
  (await call(1)).answer('one');
  await first;
  t.equal(memory.rows.length, 0);
  t.match(await list(), [{ id: ID, status: 'idle', turns: 1 }]);
  t.equal((await list()).length, 1);
});

t.test('PG-14 work between turns is refused while a turn of another server runs, and is in line itself', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const append = () => two.runtime.conversations.append(CONVERSATION, [user('b')], OPEN, accountOf());
  t.equal(
    await codeOf(two.runtime.conversations.create(two.target(), { key: 's', metadata: {}, messages: [] }, OPEN)),
    'session_busy',
  );
  (await call(1)).answer('one');
  await first;
  t.match(await append(), { turns: [{ turn: 2 }] });
  t.strictSame(await stored(memory), ['a', 'one', 'b']);
  t.equal(memory.rows.length, 0);
  await two.runtime.conversations.fork(CONVERSATION, { key: 'copy' }, OPEN);
  t.equal(await codeOf(two.runtime.conversations.fork(CONVERSATION, { key: 'copy' }, OPEN)), 'conversation_exists');
  t.equal(memory.rows.length, 0);
});

t.test('PG-17 the turn of a dead server is handled before work between turns', async (t) => {
  const agents = { assistant: { model: 'fast', onRestart: 'keep-input' } };
  const { memory, call, one, two } = await twoServers({ agents });
  const first = one.send('a');
  (await call(1)).answer('one');
  await first;
  void one.send('b');
  await call(2);
  one.server.die();
  await two.runtime.conversations.append(CONVERSATION, [user('c')], OPEN, accountOf());
  t.strictSame(await stored(memory), ['a', 'one', 'b', 'The previous answer was interrupted.', 'c']);
});

t.test('PG-19 C-133 an equal request at another server gets what was sent so far, then the rest', async (t) => {
  const gate = Promise.withResolvers<void>();
  const model = new ScriptedModel([[{ type: 'text', text: 'hello ' }, gate.promise, ...answerWith('world')]]);
  const { memory, one, two } = await twoServers({ models: { fast: model } });
  const first = one.send('a', { fingerprint: 'f' });
  await inLine(memory, 1);
  const joined = two.send('a', { fingerprint: 'f' });
  while (memory.reads === 0) await memory.change();
  gate.resolve();
  t.equal(textOfEvents(await first), 'hello world');
  t.equal(textOfEvents(await joined), 'hello world');
  t.match(endOf(await joined), { type: 'finished' });
  t.match((await joined)[0], { type: 'started', turn: 1 });
  t.equal(model.asked.length, 1);
});

t.test('PG-19 an equal request at another server keeps the turn running, and the last one ends it', async (t) => {
  const { memory, call, one, two, model } = await twoServers();
  const [caller, other] = [new AbortController(), new AbortController()];
  const first = one.send('a', { fingerprint: 'f' }, caller.signal);
  await call(1);
  const joined = two.send('a', { fingerprint: 'f' }, other.signal);
  while (memory.texts < 2) await memory.change();
  caller.abort();
  t.match(endOf(await first), { failure: { code: 'abandoned' } });
  t.notOk(model.signals[0]?.aborted);
  other.abort();
  t.match(endOf(await joined), { failure: { code: 'abandoned' } });
  await inLine(memory, 0);
  t.ok(model.signals[0]?.aborted);
});

t.test('PG-19 an equal request sees the turn fail, and its server die', async (t) => {
  for (const how of ['fails', 'dies'] as const) {
    const { memory, call, one, two } = await twoServers();
    const first = one.send('a', { fingerprint: 'f' });
    await call(1);
    const joined = two.send('a', { fingerprint: 'f' });
    while (memory.texts < 2) await memory.change();
    if (how === 'dies') one.server.die();
    else {
      await two.runtime.conversations.cancel(CONVERSATION, OPEN, accountOf()).catch(() => {});
      await first;
    }
    t.match(endOf(await joined), { failure: { code: how === 'dies' ? 'stopped' : 'turn_cancelled' } });
  }
});

t.test('PG-19 a request whose equal has ended before it was found runs itself', async (t) => {
  const { memory, clock, call, one, two } = await twoServers();
  const first = one.send('a', { fingerprint: 'f' });
  const { answer } = await call(1);
  memory.hidesOffers = true;
  const joined = two.send('a', { fingerprint: 'f' });
  while (memory.reads === 0) await memory.change();
  clock.advance(1_000);
  answer('one');
  await first;
  for (let n = 0; n < 2; n++) {
    await new Promise(setImmediate);
    clock.advance(1_000);
  }
  (await call(2)).answer('two');
  t.equal(textOfEvents(await joined), 'two');
});
