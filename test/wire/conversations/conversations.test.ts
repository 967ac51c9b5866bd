import t from 'tap';
import {
  bodyOf,
  type ConversationBody,
  type PageBody,
  SEED,
  SEVERAL_AGENTS,
  startWithConversations,
} from '../../support/conversations.js';
import { errorOf, saying } from '../../support/test-server.js';

const { server, caller } = await startWithConversations(t, SEVERAL_AGENTS);

t.test('a conversation is created, shown, changed and deleted', async (t) => {
  const made = await caller.create({ id: 'trip', metadata: { topic: 'travel' } });
  t.match(made, {
    id: /^conv_[0-9a-f]{40}$/,
    object: 'conversation',
    created_at: Number,
    metadata: { topic: 'travel' },
    status: 'idle',
    turns: 0,
    updated_at: Number,
    agent: 'assistant',
    key: 'trip',
  });
  t.ok(Number.isInteger(made.created_at) && Math.abs(made.created_at - Date.now() / 1000) < 60, 'seconds');
  t.strictSame(bodyOf(await caller.get(`/${made.id}`)), made);
  t.match(bodyOf(await caller.post(`/${made.id}`, { metadata: { topic: 'Rome', paid: 'yes' } })), {
    id: made.id,
    metadata: { topic: 'Rome', paid: 'yes' },
  });
  t.strictSame(bodyOf<ConversationBody>(await caller.post(`/${made.id}`, { metadata: null })).metadata, {});
  t.strictSame(bodyOf(await caller.delete(`/${made.id}`)), { id: made.id, object: 'conversation.deleted', deleted: true });
  const gone = await caller.get(`/${made.id}`);
  t.equal(gone.status, 404);
  t.strictSame(Object.keys(errorOf(gone)), ['message', 'type', 'param', 'code']);
  t.match(errorOf(gone), { type: 'invalid_request_error', code: 'conversation_not_found' });
  t.equal((await caller.delete(`/${made.id}`)).text, gone.text);
});

t.test('a turn continues a conversation that was created with items', async (t) => {
  const made = await caller.create({ id: 'ann', items: SEED });
  t.equal(made.turns, 1);
  await server.chat(saying('Who am I?', { session_id: 'ann' }));
  t.strictSame(
    server.asked.messages.map(({ role, content }) => [role, content]),
    [
      ['user', 'I am Ann.'],
      ['assistant', 'Hello, Ann.'],
      ['user', 'Who am I?'],
    ],
  );
  t.match(bodyOf(await caller.get(`/${made.id}`)), { turns: 2, status: 'idle' });
  t.strictSame(await caller.said(made.id), [
    'user: I am Ann.',
    'assistant: Hello, Ann.',
    'user: Who am I?',
    'assistant: Who am I?',
  ]);
});

t.test('a key belongs to its agent, and a missing key is replaced by a random one', async (t) => {
  const made = await caller.create({ id: 'same' });
  const again = await caller.post('', { id: 'same' });
  t.equal(again.status, 409);
  t.equal(errorOf(again).code, 'conversation_exists');
  t.equal(again.headers.get('x-should-retry'), 'false');
  const other = await caller.create({ id: 'same', agent: 'silent' });
  t.not(other.id, made.id);
  t.equal(other.agent, 'silent');
  const [one, two] = [await caller.create(), await caller.create({ id: ' ', agent: null, items: null, metadata: null })];
  t.match(one.key, /^[0-9A-Za-z]{22}$/);
  t.not(one.key, two.key);
  t.equal((await caller.create({ agent: 'fast' })).agent, 'fast', 'a raw model has conversations too');
  t.equal((await caller.create({ agent: 'nobody' })).agent, 'assistant', 'an unknown name is answered by the default agent');
});

t.test('an invalid new conversation gets a 400 that names the field', async (t) => {
  const cases: [fields: object, code: string | null, param: string | null][] = [
    [{ agent: 7 }, 'invalid_type', 'agent'],
    [{ agent: 'a'.repeat(257) }, 'string_above_max_length', 'agent'],
    [{ id: 7 }, 'invalid_type', 'id'],
    [{ id: 'conv_mine' }, 'invalid_value', 'id'],
    [{ id: 'a\u0000b' }, 'invalid_value', 'id'],
    [{ id: 'a\ud800' }, 'invalid_value', 'id'],
    [{ id: 'é'.repeat(257) }, 'string_above_max_length', 'id'],
    [{ metadata: 'x' }, 'invalid_type', 'metadata'],
    [{ metadata: { a: 7 } }, 'invalid_type', 'metadata.a'],
    [{ metadata: { a: 'x'.repeat(513) } }, 'string_above_max_length', 'metadata.a'],
    [{ metadata: { ['k'.repeat(65)]: '' } }, 'property_name_above_max_length', `metadata.${'k'.repeat(65)}`],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [i, ''])) }, 'object_above_max_properties', 'metadata'],
    [{ items: {} }, 'invalid_type', 'items'],
    [{ items: [...SEED, { role: 'system', content: 'Be brief.' }] }, 'invalid_value', 'items[2].role'],
    [{ items: [...SEED, { type: 'reasoning' }] }, 'invalid_value', 'items[2].type'],
    [{ items: [...SEED, { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }] }, null, 'items[1]'],
    [{ items: [{ type: 'function_call_output', call_id: 'c', output: '' }] }, null, 'items[0]'],
    [
      { items: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.example' }] }] },
      'invalid_value',
      'items[0].content[0]',
    ],
  ];
  for (const [fields, code, param] of cases) {
    const reply = await caller.post('', { id: 'faulty', ...fields });
    t.equal(reply.status, 400, JSON.stringify(fields).slice(0, 80));
    t.match(errorOf(reply), { type: 'invalid_request_error', code, param });
  }
  t.equal((await caller.post('', '[]')).status, 400);
  t.equal((await caller.post('', 'no')).status, 400);
  t.match(await caller.create({ id: 'faulty' }), { turns: 0 }, 'nothing came of them');
});

t.test('ignored fields and parameters are named', async (t) => {
  const made = await caller.post('', { agent: 'assistant', name: 'x', store: null, 'odd name': 1, model: 'm' });
  t.equal(made.headers.get('x-ignored-params'), 'name, ?, model');
  const { id } = made.body as ConversationBody;
  const listed = await caller.get('?limit=5&colour=red&include[]=a&include[]=b&%22=1');
  t.equal(listed.headers.get('x-ignored-params'), 'colour, include, ?');
  t.equal((await caller.get(`/${id}/items?include[]=x&user=ann`)).headers.get('x-ignored-params'), 'include, user');
  t.equal((await caller.get(`/${id}?verbose`)).headers.get('x-ignored-params'), 'verbose');
  t.notOk((await caller.get(`/${id}/items?limit=1&order=asc`)).headers.has('x-ignored-params'));
});

t.test('C-190 C-191 conversations are listed by page in order of their last activity, optionally for one user', async (t) => {
  const { caller, server } = await startWithConversations(t);
  const empty = { object: 'list', data: [], first_id: null, last_id: null, has_more: false };
  t.strictSame(bodyOf(await caller.get()), empty);
  const keys = ['a', 'b', 'c', 'd', 'e'];
  for (const key of keys) await caller.create({ id: key, agent: 'assistant' });
  await server.chat(saying('Hi', { session_id: 'b', user: 'ann' }));
  await server.chat(saying('Hi', { user: 'ann' }));

  const page = async (query: string) => bodyOf<PageBody<ConversationBody>>(await caller.get(query));
  const keysOf = ({ data }: PageBody<ConversationBody>) => data.map(({ key }) => key);
  t.strictSame(keysOf(await page('?order=asc')), [...keys, 'ann:b', 'ann']);
  t.strictSame(keysOf(await page('')), ['ann', 'ann:b', ...keys.toReversed()]);
  t.strictSame(keysOf(await page('?user=ann')), ['ann', 'ann:b']);
  t.strictSame(keysOf(await page('?user=')), ['ann', 'ann:b', ...keys.toReversed()], 'a blank user counts as absent');
  t.strictSame(await page('?user=nobody'), empty);

  const seen: string[] = [];
  for (let after = ''; ; ) {
    const { data, first_id, last_id, has_more } = await page(`?limit=3&order=asc${after}`);
    seen.push(...data.map(({ key }) => key));
    t.equal(first_id, data[0]?.id);
    t.match(last_id, `${data.at(-1)?.id}_`);
    if (!has_more) break;
    t.equal(data.length, 3);
    after = `&after=${last_id}`;
  }
  t.strictSame(seen, [...keys, 'ann:b', 'ann']);

  const first = await page('?limit=2');
  t.strictSame(keysOf(first), ['ann', 'ann:b']);
  await server.chat(saying('More', { session_id: 'a' }));
  await server.chat(saying('More', { session_id: 'b', user: 'ann' }));
  await caller.post(`/${first.data[0]?.id}`, { metadata: { title: 'Renamed' } });
  t.strictSame(keysOf(await page(`?after=${first.last_id}`)), ['e', 'd', 'c', 'b'], 'a turn moves a session, and not the page');
  t.strictSame(keysOf(await page('?limit=3')), ['ann:b', 'a', 'ann'], 'new metadata do not');
  t.strictSame(keysOf(await page(`?after=${first.data[1]?.id}`)), ['a', 'ann', 'e', 'd', 'c', 'b'], 'after where it is now');
  t.strictSame(keysOf(await page('?metadata=title:Renamed')), ['ann']);
});

t.test('an invalid list query gets a 400 that names the parameter', async (t) => {
  const { id } = await caller.create({ items: SEED });
  const cases: [query: string, code: string | null, param: string][] = [
    ['limit=0', 'integer_below_min_value', 'limit'],
    ['limit=-5', 'integer_below_min_value', 'limit'],
    ['limit=101', 'integer_above_max_value', 'limit'],
    ['limit=ten', 'invalid_type', 'limit'],
    ['limit=1.5', 'invalid_type', 'limit'],
    ['limit=', 'invalid_type', 'limit'],
    ['limit=1&limit=2', 'invalid_value', 'limit'],
    ['order=up', 'invalid_value', 'order'],
    ['order=asc&order=desc', 'invalid_value', 'order'],
    [`after=conv_${'0'.repeat(40)}`, null, 'after'],
    ['after=x', null, 'after'],
  ];
  for (const [query, code, param] of cases) {
    for (const path of ['', `/${id}/items`]) {
      const reply = await caller.get(`${path}?${query}`);
      t.equal(reply.status, 400, `${path}?${query}`);
      t.match(errorOf(reply), { type: 'invalid_request_error', param, ...(code === null ? {} : { code }) });
    }
  }
  for (const query of ['user=a%00b', `user=${'x'.repeat(513)}`, 'user=a&user=b']) {
    t.match(errorOf(await caller.get(`?${query}`)), { param: 'user' });
  }
});
