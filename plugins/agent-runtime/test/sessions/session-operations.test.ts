import { setImmediate } from 'node:timers/promises';
import type { Message, Principal, SessionStore } from '@plugboard/kernel';
import { conversationId, OPEN, TurnError } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { accountOf, answerWith, endOf, gatedModel, ScriptedModel, senderFor, textOfEvents, tool, user } from '../harness.js';
import { conversing, S } from './conversing.js';

const ASSISTANT: Message = { role: 'assistant', content: 'Hi.' };
/** It waits for a result. */
const CALLING: Message = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
};
const ID = conversationId(S);

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error) => (error instanceof TurnError ? error.code : String(error)),
  );

t.test('S-71 what is read of a session is reserved before, or refused', async (t) => {
  const { conversations, send } = await conversing();
  await send('x'.repeat(100_000));
  await conversations.putDocument(ID, 'resp_1', 'y'.repeat(100_000), OPEN);
  const [small, large] = [accountOf(100_000), accountOf()];
  const page = { limit: 1, order: 'asc' } as const;
  t.equal(await code(conversations.turns(ID, page, OPEN, small)), 'overloaded');
  t.equal(await code(conversations.document('resp_1', OPEN, small)), 'overloaded');
  t.equal(await code(conversations.list({ limit: 100, order: 'asc', search: 'x' }, OPEN, small)), 'overloaded');
  t.equal(small.reserved, 0);
  await conversations.turns(ID, page, OPEN, large);
  t.ok(large.reserved > 300_000);
  await conversations.document('resp_1', OPEN, large);
  t.ok(large.reserved > 600_000);
});

t.test('a session created by a turn is a conversation with an opaque id', async (t) => {
  const { conversations, send, clock } = await conversing();
  await send('Hello', { user: 'ann' });
  const { bytes, ...conversation } = await conversations.get(ID, OPEN);
  t.ok(bytes > 50);
  t.strictSame(conversation, {
    id: S,
    conversation: ID,
    createdAt: clock.now(),
    updatedAt: clock.now(),
    turns: 1,
    user: 'ann',
    title: 'Hello',
    metadata: {},
    status: 'idle',
  });
  const { turns } = await conversations.turns(ID, { limit: 10, order: 'asc' }, OPEN, accountOf());
  t.match(turns, [{ turn: 1, record: { reason: 'stop', steps: [{ connection: 'fast' }], calls: [] } }]);
  t.strictSame(turns[0]?.messages, [user('Hello'), { role: 'assistant', content: 'ok' }]);
});

t.test('a turn continues a conversation that was created with messages', async (t) => {
  const model = new ScriptedModel(() => answerWith('ok'));
  const { conversations, send, target } = await conversing({ models: { fast: model } });
  const made = await conversations.create(
    target(),
    { key: 's', metadata: { a: 'b' }, messages: [user('Hello'), ASSISTANT] },
    OPEN,
  );
  t.match(made, { conversation: ID, turns: 1, metadata: { a: 'b' }, status: 'idle' });
  await send('More');
  t.strictSame(model.asked[0]?.messages, [user('Hello'), ASSISTANT, user('More')]);
  t.equal(await code(conversations.create(target(), { key: 's', metadata: {}, messages: [] }, OPEN)), 'conversation_exists');
});

t.test('a conversation created without a key gets an unguessable one', async (t) => {
  const { conversations, target } = await conversing();
  const one = await conversations.create(target(), { metadata: {}, messages: [] }, OPEN);
  const two = await conversations.create(target(), { metadata: {}, messages: [] }, OPEN);
  t.match(one.id.key, /^[0-9A-Za-z]{22}$/);
  t.not(one.id.key, two.id.key);
  t.equal(one.turns, 0);
});

t.test('messages that no provider accepts, and system messages, are refused', async (t) => {
  const { conversations, target } = await conversing();
  for (const messages of [
    [CALLING],
    [{ role: 'tool', tool_call_id: 'c', content: '' }],
    [{ role: 'system', content: 'Be kind.' }],
  ] as Message[][]) {
    t.equal(await code(conversations.create(target(), { key: 's', metadata: {}, messages }, OPEN)), 'invalid_request');
  }
  t.equal(await code(conversations.get(ID, OPEN)), 'conversation_not_found');
});

t.test('appended messages are a turn and close open tool calls', async (t) => {
  const { conversations, store } = await conversing();
  await store.commit(S, { expected: 0, messages: [user('Hello'), CALLING] });
  const closed: Message = { role: 'tool', tool_call_id: 'c', content: 'Error: the caller returned no result for this call.' };
  const { turns } = await conversations.append(ID, [user('Never mind'), ASSISTANT], OPEN, accountOf());
  t.strictSame(turns, [{ turn: 2, messages: [closed, user('Never mind'), ASSISTANT], record: undefined }]);
  const answered = [CALLING, { role: 'tool', tool_call_id: 'c', content: '1' }, ASSISTANT] as Message[];
  t.strictSame((await conversations.append(ID, answered, OPEN, accountOf())).turns, [
    { turn: 3, messages: answered, record: undefined },
  ]);
});

t.test('messages cannot be appended while a turn runs', async (t) => {
  const { model, call } = gatedModel();
  const { conversations, send, store } = await conversing({ models: { fast: model } });
  await store.create(S, { metadata: {}, messages: [] });
  const turn = send('Hello');
  const { answer } = await call(1);
  t.equal((await conversations.get(ID, OPEN)).status, 'running');
  t.equal(await code(conversations.append(ID, [user('x')], OPEN, accountOf())), 'session_busy');
  answer('Hi');
  t.match(endOf(await turn), { type: 'finished' });
  t.equal((await conversations.append(ID, [user('x')], OPEN, accountOf())).turns[0]?.turn, 2);
});

t.test('a turn waits for messages that are being appended and sees them', async (t) => {
  const model = new ScriptedModel(() => answerWith('ok'));
  const { conversations, send, store } = await conversing({ models: { fast: model } });
  await store.create(S, { metadata: {}, messages: [] });
  const gate = Promise.withResolvers<void>();
  const commit = store.commit.bind(store);
  const entered = Promise.withResolvers<void>();
  store.commit = async (...args) => {
    entered.resolve();
    await gate.promise;
    return commit(...args);
  };
  const appended = conversations.append(ID, [user('First'), ASSISTANT], OPEN, accountOf());
  await entered.promise;
  const second = code(conversations.append(ID, [user('Beside')], OPEN, accountOf()));
  const turn = send('Second');
  t.equal(await second, 'session_busy');
  t.equal(model.asked.length, 0);
  gate.resolve();
  await appended;
  t.match(endOf(await turn), { type: 'finished' });
  t.strictSame(model.asked[0]?.messages, [user('First'), ASSISTANT, user('Second')]);
});

t.test('cancel ends waiting and running turns, and the next turn starts at once', async (t) => {
  const { model, call } = gatedModel();
  const { conversations, send, store } = await conversing({ models: { fast: model } });
  await store.create(S, { metadata: {}, messages: [] });
  const turns = [send('one'), send('two')];
  await call(1);
  t.equal((await conversations.cancel(ID, OPEN, accountOf())).status, 'idle');
  for (const turn of turns) t.match(endOf(await turn), { failure: { code: 'turn_cancelled' } });
  const next = send('three');
  (await call(2)).answer('ok');
  t.equal(textOfEvents(await next), 'ok');
  t.strictSame(model.asked.at(-1)?.messages, [user('three')]);
});

t.test('R-078 deleting a session ends its running turn, which stores nothing', async (t) => {
  const { model, call } = gatedModel();
  const app = await conversing({ models: { fast: model } });
  const { conversations, send } = app;
  const first = send('one');
  (await call(1)).answer('kept');
  await first;
  const [running, waiting] = [send('two'), send('three')];
  const { answer } = await call(2);
  await conversations.delete(ID, OPEN);
  answer('too late');
  for (const turn of [running, waiting]) t.match(endOf(await turn), { failure: { code: 'session_deleted' } });
  t.equal(await code(conversations.get(ID, OPEN)), 'conversation_not_found');
  t.equal(await code(conversations.delete(ID, OPEN)), 'conversation_not_found');
  t.match(
    app.lines.filter(({ log }) => log === 'audit'),
    [{ event: 'session_deleted', conversation: ID, project: 'default' }],
  );
  const again = send('four');
  (await call(3)).answer('new');
  await again;
  t.strictSame(model.asked.at(-1)?.messages, [user('four')], 'a new session under the old key');
  t.equal((await conversations.get(ID, OPEN)).turns, 1);
});

t.test('R-078 a turn during the deletion of its session waits and starts with an empty history', async (t) => {
  const model = new ScriptedModel(() => answerWith('ok'));
  const { conversations, send, store } = await conversing({ models: { fast: model } });
  await send('one');
  const gate = Promise.withResolvers<void>();
  const remove = store.delete.bind(store);
  store.delete = async (id) => {
    await gate.promise;
    return remove(id);
  };
  const deleted = conversations.delete(ID, OPEN);
  await setImmediate();
  const turn = send('two');
  gate.resolve();
  await deleted;
  await turn;
  t.strictSame(model.asked.at(-1)?.messages, [user('two')]);
});

t.test('a fork contains the turns up to the given one and is independent', async (t) => {
  const model = new ScriptedModel(() => answerWith('ok'));
  const { conversations, send } = await conversing({ models: { fast: model } });
  await send('one');
  await send('two');
  const fork = await conversations.fork(ID, { key: 'copy', turns: 1 }, OPEN);
  t.match(fork, { id: { key: 'copy' }, turns: 1 });
  t.equal((await conversations.fork(ID, {}, OPEN)).turns, 2);
  t.equal(await code(conversations.fork(ID, { key: 'copy' }, OPEN)), 'conversation_exists');
  await send('three', { key: 'copy' });
  t.strictSame(model.asked.at(-1)?.messages, [user('one'), { role: 'assistant', content: 'ok' }, user('three')]);
  t.equal((await conversations.get(ID, OPEN)).turns, 2);
});

t.test('S-01 S-03 S-04 a conversation is visible only to its project and to tokens that may use its agent', async (t) => {
  const acme: Principal = { ...OPEN, project: 'acme', token: 'ci' };
  const narrow: Principal = { ...OPEN, agents: ['other'] };
  const { conversations, send } = await conversing({ settings: { projects: { acme: {} } } });
  await send('secret');
  for (const stranger of [acme, narrow]) {
    for (const attempt of [
      conversations.get(ID, stranger),
      conversations.turns(ID, { limit: 1, order: 'asc' }, stranger, accountOf()),
      conversations.setMetadata(ID, { a: 'b' }, stranger),
      conversations.append(ID, [user('x')], stranger, accountOf()),
      conversations.fork(ID, {}, stranger),
      conversations.cancel(ID, stranger, accountOf()),
      conversations.delete(ID, stranger),
    ])
      t.equal(await code(attempt), 'conversation_not_found');
    t.strictSame(await conversations.list({ limit: 10, order: 'asc' }, stranger, accountOf()), []);
    const after = { conversation: ID, updatedAt: 0 };
    t.strictSame(await conversations.list({ limit: 10, order: 'asc', after }, stranger, accountOf()), []);
  }
  t.match(await conversations.list({ limit: 10, order: 'asc' }, OPEN, accountOf()), [
    { conversation: ID, turns: 1, metadata: {} },
  ]);
});

t.test('tool calls are shown with entry and tool name, as far as the agent’s toolVisibility allows', async (t) => {
  const files = { single: false, tools: () => [tool('read', () => 'text')] };
  const { conversations, send } = await conversing({
    agents: { assistant: { model: 'fast', tools: ['files'], toolVisibility: 'names' } },
    tools: { files },
  });
  await send('Hello');
  const shown = await conversations.turns(ID, { limit: 1, order: 'asc' }, OPEN, accountOf());
  t.equal(shown.toolVisibility, 'names');
  t.strictSame(shown.toolOf('files__read'), { entry: 'files', name: 'read' });
  t.equal(shown.toolOf('mine'), undefined);
});

t.test('the sessions of a removed agent can be read, without its tool calls', async (t) => {
  const { conversations, store } = await conversing();
  const gone = { ...S, agent: 'gone' };
  await store.commit(gone, { expected: 0, messages: [user('Hello'), ASSISTANT] });
  const shown = await conversations.turns(conversationId(gone), { limit: 1, order: 'asc' }, OPEN, accountOf());
  t.equal(shown.toolVisibility, 'none');
  t.equal(shown.toolOf('x'), undefined);
  t.equal(shown.turns.length, 1);
});

t.test('a session whose first turn runs is found, cancelled and deleted, also if its caller has left', async (t) => {
  for (const onDisconnect of ['cancel', 'continue']) {
    const { model, call } = gatedModel();
    const agents = { assistant: { model: 'fast', onDisconnect }, other: { model: 'fast' } };
    const { conversations, send } = await conversing({ models: { fast: model }, agents });
    for (const [n, end] of (['cancel', 'delete'] as const).entries()) {
      const caller = new AbortController();
      const turn = send('Hello', {}, caller.signal);
      const queued = send('More');
      await call(n + 1);
      if (onDisconnect === 'continue') caller.abort();
      t.match(await conversations.get(ID, OPEN), { id: S, conversation: ID, turns: 0, status: 'running' });
      t.strictSame((await conversations.turns(ID, { limit: 1, order: 'asc' }, OPEN, accountOf())).turns, [], 'none is stored');
      t.equal(await code(conversations.get(ID, { ...OPEN, project: 'acme' })), 'conversation_not_found');
      t.equal(await code(conversations.cancel(ID, { ...OPEN, agents: ['other'] }, accountOf())), 'conversation_not_found');
      t.match((await conversations[end](ID, OPEN, accountOf())) ?? { status: 'idle' }, { status: 'idle' });
      const reason = end === 'delete' ? 'session_deleted' : 'turn_cancelled';
      t.match(endOf(await turn), { failure: { code: onDisconnect === 'continue' ? 'abandoned' : reason } });
      t.match(endOf(await queued), { failure: { code: reason } });
      t.equal(await code(conversations.get(ID, OPEN)), 'conversation_not_found', 'nothing is left of it');
    }
  }
});

t.test('a key for a new session is checked', async (t) => {
  const { conversations, send, target } = await conversing();
  await send('Hello');
  for (const key of [' ', 'x'.repeat(600), 'a\u0000']) {
    t.equal(await code(conversations.create(target(), { key, metadata: {}, messages: [] }, OPEN)), 'invalid_request');
    t.equal(await code(conversations.fork(ID, { key }, OPEN)), 'invalid_request');
  }
  t.equal(await code(conversations.append(ID, [{ role: 'user' } as Message], OPEN, accountOf())), 'invalid_request');
});

t.test('S-15 a malformed id is not looked up in the store', async (t) => {
  const { conversations, store } = await conversing();
  const asked: string[] = [];
  store.find = async (_, id) => void asked.push(id);
  for (const id of ['', 's', '../../etc/passwd', 'conv_', `${ID}0`, `${ID.slice(0, -1)}\0`, ID.toUpperCase(), 'x'.repeat(10_000)])
    t.equal(await code(conversations.get(id, OPEN)), 'conversation_not_found');
  t.strictSame(asked, []);
  await code(conversations.get(ID, OPEN));
  t.strictSame(asked, [ID, ID], 'again, in case its first turn was stored meanwhile');
});

t.test('a fault after tool results is reported with its own place', async (t) => {
  const { conversations, store } = await conversing();
  await store.commit(S, { expected: 0, messages: [user('Hello'), CALLING] });
  const result: Message = { role: 'tool', tool_call_id: 'c', content: '1' };
  const refused = await conversations.append(ID, [result, CALLING], OPEN, accountOf()).catch((error) => error);
  t.match(refused, { code: 'invalid_request', options: { param: 'messages[1]' } });
});

t.test('a failing store is reported as such, and the session continues', async (t) => {
  const { conversations, send, store } = await conversing();
  await send('Hello');
  const broken = async () => {
    throw new Error('no disk');
  };
  for (const method of ['find', 'list', 'delete', 'fork', 'setMetadata', 'turns'] as const) {
    const works = store[method];
    (store as { -readonly [K in keyof SessionStore]: unknown })[method] = broken;
    const attempt = {
      find: () => conversations.get(ID, OPEN),
      list: () => conversations.list({ limit: 1, order: 'asc' }, OPEN, accountOf()),
      delete: () => conversations.delete(ID, OPEN),
      fork: () => conversations.fork(ID, {}, OPEN),
      setMetadata: () => conversations.setMetadata(ID, {}, OPEN),
      turns: () => conversations.turns(ID, { limit: 1, order: 'asc' }, OPEN, accountOf()),
    }[method];
    t.equal(await code(attempt()), 'store_failed', method);
    (store as { -readonly [K in keyof SessionStore]: unknown })[method] = works;
  }
  t.match(endOf(await send('More')), { type: 'finished' });
});

t.test('C-169 the turn limit of a token counts all its sessions together', async (t) => {
  const { model, call } = gatedModel();
  const limited: Principal = { ...OPEN, token: 'ci', tokenId: 'tok_1', limits: { runningTurns: 2 } };
  const app = await conversing({ models: { fast: model } });
  const send = senderFor(app, limited);
  const [one, two] = [send('x', { key: 'a' }), send('x', { key: 'b' })];
  const first = await call(1);
  const second = await call(2);
  const refused = { failure: { code: 'rate_limited', retryAfter: 1 } };
  t.match(endOf(await send('x', { key: 'c' })), refused);
  const others = senderFor(app, { ...limited, tokenId: 'tok_2' })('x', { key: 'd' });
  (await call(3)).answer('of another token');
  t.match(endOf(await others), { type: 'finished' });
  first.answer('ok');
  t.match(endOf(await one), { type: 'finished' });
  const next = send('x', { key: 'c' });
  (await call(4)).answer('ok');
  second.answer('ok');
  t.match(endOf(await next), { type: 'finished' });
  t.match(endOf(await two), { type: 'finished' });
});

t.test('a session closed after crashes is refused with that reason', async (t) => {
  const clock = new ManualClock();
  const { conversations, send, store } = await conversing({
    clock,
    interceptors: [
      () => {
        throw new Error('a defect');
      },
    ],
  });
  await store.create(S, { metadata: {}, messages: [] });
  for (let i = 0; i < 3; i++) await send('x');
  t.equal((await conversations.get(ID, OPEN)).status, 'quarantined');
  clock.advance(60_000);
  t.equal((await conversations.get(ID, OPEN)).status, 'idle');
});

t.test('a document is kept with its session, for the same project and agents', async (t) => {
  const { conversations, send } = await conversing();
  await send('Hello');
  await conversations.putDocument(ID, 'resp_1', '{"a":1}', OPEN);
  t.strictSame(await conversations.document('resp_1', OPEN, accountOf()), {
    conversation: ID,
    agent: 'assistant',
    text: '{"a":1}',
  });
  const others: Principal[] = [
    { ...OPEN, project: 'other' },
    { ...OPEN, agents: ['billing'] },
  ];
  for (const principal of others) {
    t.equal(await conversations.document('resp_1', principal, accountOf()), undefined);
    t.equal(await conversations.deleteDocument('resp_1', principal, accountOf()), undefined);
    t.equal(await code(conversations.putDocument(ID, 'resp_1', '', principal)), 'conversation_not_found');
  }
  t.equal(await conversations.deleteDocument('resp_1', OPEN, accountOf()), 0);
  t.equal(await conversations.document('resp_1', OPEN, accountOf()), undefined);
  await conversations.putDocument(ID, 'resp_2', '', OPEN);
  await conversations.delete(ID, OPEN);
  t.equal(await conversations.document('resp_2', OPEN, accountOf()), undefined);
});
