import { eventually } from '@plugboard/testing';
import t from 'tap';
import {
  bodyOf,
  Caller,
  type ConversationBody,
  type PageBody,
  SEED,
  SEVERAL_AGENTS,
  startWithConversations,
} from '../../support/conversations.js';
import { answerOf, errorOf, saying } from '../../support/test-server.js';

const { server, caller } = await startWithConversations(t, SEVERAL_AGENTS);

t.test('a conversation is forked in whole turns', async (t) => {
  const { id } = await caller.create({ id: 'trunk', items: SEED, metadata: { topic: 'x' } });
  await server.chat(saying('Two', { session_id: 'trunk' }));
  await server.chat(saying('Three', { session_id: 'trunk' }));
  const items = await caller.items(id);
  const all = await caller.said(id);

  const copy = bodyOf<ConversationBody>(await caller.post(`/${id}/fork`, { id: 'branch' }));
  t.match(copy, { key: 'branch', agent: 'assistant', turns: 3, metadata: { topic: 'x' }, status: 'idle' });
  t.strictSame(await caller.said(copy.id), all);
  for (const [index, turns] of [0, 1, 1, 2, 2, 3].entries()) {
    const cut = bodyOf<ConversationBody>(await caller.post(`/${id}/fork`, { after_item: items[index]?.id }));
    t.equal(cut.turns, turns, `after item ${index}`);
    t.strictSame(await caller.said(cut.id), all.slice(0, turns * 2));
  }
  await server.chat(saying('Elsewhere', { session_id: 'branch' }));
  t.strictSame(await caller.said(id), all, 'the original stays as it was');

  t.equal(errorOf(await caller.post(`/${id}/fork`, { id: 'branch' })).code, 'conversation_exists');
  const [others] = await caller.items(copy.id);
  for (const after_item of [others?.id, 'msg_1', '', `${items[0]?.id}_0`]) {
    const reply = await caller.post(`/${id}/fork`, { after_item });
    t.equal(reply.status, 400);
    t.equal(errorOf(reply).param, 'after_item');
  }
  t.match(errorOf(await caller.post(`/${id}/fork`, { after_item: 7 })), { param: 'after_item', code: 'invalid_type' });
  t.match(errorOf(await caller.post(`/${id}/fork`, { id: 'conv_x' })), { param: 'id' });
  t.equal((await caller.post(`/conv_${'0'.repeat(40)}/fork`)).status, 404);
});

t.test('cancel ends running and waiting turns with an error', async (t) => {
  const { id } = await caller.create({ id: 'long' });
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const number = server.models.requests.length + 1;
  server.models.enqueue({ before: gate.promise, text: 'Never.' });
  const running = server.chat(saying('Long', { session_id: 'long' }));
  await server.models.received(number);
  const waiting = server.chat(saying('Later', { session_id: 'long' }));
  t.equal(bodyOf<ConversationBody>(await caller.get(`/${id}`)).status, 'running');
  const busy = await caller.post(`/${id}/items`, { items: SEED });
  t.equal(busy.status, 409);
  t.equal(errorOf(busy).code, 'session_busy');

  t.match(bodyOf(await caller.send('POST', `/${id}/cancel`)), { id, status: 'idle', turns: 0 });
  for (const ended of [await running, await waiting]) {
    t.equal(ended.status, 400);
    t.equal(errorOf(ended).code, 'turn_cancelled');
    t.equal(ended.headers.get('x-should-retry'), 'false');
  }
  t.match(bodyOf(await caller.send('POST', `/${id}/cancel`)), { status: 'idle' }, 'also where nothing runs');
  t.equal(answerOf(await server.chat(saying('Again', { session_id: 'long' }))), 'Again');
});

t.test('deleting a conversation ends its running turn with an error', async (t) => {
  const { id } = await caller.create({ id: 'doomed', items: SEED });
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  const number = server.models.requests.length + 1;
  server.models.enqueue({ before: gate.promise, text: 'Never.' });
  const running = server.chat(saying('Long', { session_id: 'doomed' }));
  await server.models.received(number);
  t.equal((await caller.delete(`/${id}`)).status, 200);
  t.equal(errorOf(await running).code, 'session_deleted');
  t.equal((await caller.get(`/${id}`)).status, 404);
  await server.chat(saying('Anew', { session_id: 'doomed' }));
  t.strictSame(await caller.said(id), ['user: Anew', 'assistant: Anew'], 'the key begins a new one, under the same id');
  await eventually(() => server.started.logs.some(({ event }) => event === 'session_deleted'));
});

t.test('a chat completion continues the conversation whose id is its session_id', async (t) => {
  const { id } = await caller.create({ id: 'by-id', items: SEED });
  const reply = await server.chat(saying('Who am I?', { session_id: id, user: 'bob' }));
  t.equal(answerOf(reply), 'Who am I?');
  t.equal(reply.headers.get('x-ignored-params'), 'user');
  t.equal(answerOf(await server.chat(saying('Really?'), { 'x-session-id': id })), 'Really?');
  t.equal((await caller.said(id)).length, 6);
  t.strictSame(bodyOf<PageBody<ConversationBody>>(await caller.get('?user=bob')).data, [], 'the user beside it says nothing');

  const unknown = await caller.get(`/conv_${'0'.repeat(40)}`);
  const asked = server.models.requests.length;
  for (const session_id of [`conv_${'0'.repeat(40)}`, 'conv_', 'conv_x', `${id}0`, id.toUpperCase().replace('CONV', 'conv')]) {
    const nowhere = await server.chat(saying('Hi', { session_id }));
    t.equal(nowhere.status, 404, session_id);
    t.equal(nowhere.text, unknown.text);
    t.equal((await server.chat(saying('Hi', { stream: true, session_id }))).status, 404);
  }
  const other = await server.chat({ ...saying('Hi', { session_id: id }), model: 'silent' });
  t.equal(other.status, 400);
  t.match(errorOf(other), { param: 'session_id', code: 'invalid_value', message: /'assistant'.*'silent'/ });
  t.equal(
    answerOf(await server.chat({ ...saying('Hi', { session_id: id }), model: 'nobody' })),
    'Hi',
    'the default agent is its agent',
  );
  t.equal(server.models.requests.length, asked + 1, 'C-045 no other request was sent');
});

t.test('all callers with the key of a conversation share it', async (t) => {
  await server.chat(saying('Hi', { user: 'carol', session_id: 's' }));
  const { data } = bodyOf<PageBody<ConversationBody>>(await new Caller(server).get('?user=carol'));
  t.match(data, [{ key: 'carol:s', agent: 'assistant', turns: 1 }]);
  await server.chat(saying('Again', { session_id: 'carol:s' }));
  t.match(bodyOf(await caller.get(`/${data[0]?.id}`)), { turns: 2 });
});
