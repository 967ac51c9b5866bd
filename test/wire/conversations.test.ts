import { eventually } from '@plugboard/kernel/testing';
import t from 'tap';
import {
  bodyOf,
  Caller,
  CONVERSATION_TRANSPORTS,
  type ConversationBody,
  type ItemBody,
  type PageBody,
  startWithConversations,
} from '../support/conversations.js';
import { answerOf, errorOf, saying } from '../support/test-server.js';

const TWO_AGENTS = `${CONVERSATION_TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, input: [text] }
  sharp: { use: openai, baseUrl: "\${MODEL_URL}", model: big-2, input: [text, image] }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
  discreet: { model: fast, tools: [clock], toolVisibility: names }
  silent: { model: fast, tools: [clock], toolVisibility: none }
  seeing: { model: sharp, clientTools: passthrough, tools: [clock] }
defaultAgent: assistant
`;

const { server, caller } = await startWithConversations(t, TWO_AGENTS);

const seed = [
  { role: 'user', content: 'I am Ann.' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello, Ann.', annotations: [] }] },
];
const clockCall = { id: 'call_1', name: 'clock', arguments: { timeZone: 'UTC' } };
const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };

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
  const made = await caller.create({ id: 'ann', items: seed });
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
    [{ items: [...seed, { role: 'system', content: 'Be brief.' }] }, 'invalid_value', 'items[2].role'],
    [{ items: [...seed, { type: 'reasoning' }] }, 'invalid_value', 'items[2].type'],
    [{ items: [...seed, { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }] }, null, 'items[1]'],
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
  const listed = await caller.get('?limit=5&status=idle&include[]=a&include[]=b&%22=1');
  t.equal(listed.headers.get('x-ignored-params'), 'status, include, ?');
  t.equal((await caller.get(`/${id}/items?include[]=x&user=ann`)).headers.get('x-ignored-params'), 'include, user');
  t.equal((await caller.get(`/${id}?verbose`)).headers.get('x-ignored-params'), 'verbose');
  t.notOk((await caller.get(`/${id}/items?limit=1&order=asc`)).headers.has('x-ignored-params'));
});

t.test('conversations are listed by page in order of creation, optionally for one user', async (t) => {
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
    t.equal(last_id, data.at(-1)?.id);
    if (!has_more) break;
    t.equal(data.length, 3);
    after = `&after=${last_id}`;
  }
  t.strictSame(seen, [...keys, 'ann:b', 'ann']);
});

t.test('an invalid list query gets a 400 that names the parameter', async (t) => {
  const { id } = await caller.create({ items: seed });
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

t.test('items show the agent’s tool calls with their results', async (t) => {
  const { id } = await caller.create({ id: 'clocked' });
  server.models.enqueue({ text: 'Let me look.', toolCalls: [clockCall] }, { text: 'It is late.' });
  await server.chat(saying('What time is it?', { session_id: 'clocked' }));
  const [asked, looking, call, said, ...others] = await caller.items(id);
  const digest = id.slice('conv_'.length);
  t.strictSame(asked, {
    id: `msg_${digest}_1_0`,
    type: 'message',
    role: 'user',
    status: 'completed',
    content: [{ type: 'input_text', text: 'What time is it?' }],
  });
  t.match(looking, { id: `msg_${digest}_1_1`, role: 'assistant', content: [{ type: 'output_text', text: 'Let me look.' }] });
  t.match(call, {
    id: `mcp_${digest}_1_1_0`,
    type: 'mcp_call',
    server_label: 'clock',
    arguments: '{"timeZone":"UTC"}',
    output: /UTC/,
    error: null,
    status: 'completed',
  });
  t.match(said, { id: `msg_${digest}_1_3`, content: [{ text: 'It is late.', annotations: [] }] });
  t.strictSame(others, []);

  for (const item of [asked, looking, call, said]) {
    t.strictSame(bodyOf(await caller.get(`/${id}/items/${item?.id}`)), item);
  }
  const newest = bodyOf<PageBody<ItemBody>>(await caller.get(`/${id}/items?limit=2`));
  t.strictSame(newest.data, [said, call]);
  t.match(newest, { first_id: said?.id, last_id: call?.id, has_more: true });
  const rest = bodyOf<PageBody<ItemBody>>(await caller.get(`/${id}/items?limit=2&after=${newest.last_id}`));
  t.strictSame(rest.data, [looking, asked]);
  t.equal(rest.has_more, false);
});

t.test('items show tool calls as far as the agent’s toolVisibility allows', async (t) => {
  const seen = async (agent: string) => {
    const { id } = await caller.create({ agent, id: 'shy' });
    server.models.enqueue({ toolCalls: [clockCall] }, { text: 'Late.' });
    await server.chat({ model: agent, messages: [{ role: 'user', content: 'Time?' }], session_id: 'shy' });
    const page = await caller.get(`/${id}/items`);
    t.equal(page.text.includes('timeZone'), false, `${agent}: no arguments`);
    return bodyOf<PageBody<ItemBody>>(page).data.map(({ type, output }) => [type, output]);
  };
  t.strictSame(await seen('discreet'), [
    ['message', undefined],
    ['mcp_call', null],
    ['message', undefined],
  ]);
  t.strictSame(await seen('silent'), [
    ['message', undefined],
    ['message', undefined],
  ]);
});

t.test('items can be added while no turn runs, and the model sees them', async (t) => {
  const { id } = await caller.create({ id: 'grown', agent: 'assistant' });
  const items = [
    ...seed,
    { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"city":"Rome"}' },
    { type: 'function_call_output', call_id: 'c1', output: 'Sun' },
    { role: 'assistant', content: 'Sun.' },
  ];
  const added = bodyOf<PageBody<ItemBody>>(await caller.post(`/${id}/items`, { items }));
  t.match(added, { object: 'list', has_more: false, first_id: added.data[0]?.id, last_id: added.data.at(-1)?.id });
  t.strictSame(
    added.data.map(({ type }) => type),
    ['message', 'message', 'function_call', 'function_call_output', 'message'],
  );
  t.strictSame(await caller.items(id), added.data);
  bodyOf(await caller.post(`/${id}/items`, { items: [{ role: 'user', content: 'One more thing.' }] }));
  await server.chat(saying('And?', { session_id: 'grown' }));
  t.strictSame(
    server.asked.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'user', 'user'],
  );

  for (const [body, param] of [
    [{}, 'items'],
    [{ items: null }, 'items'],
    [{ items: [] }, 'items'],
    [{ items: Array(21).fill(seed[0]) }, 'items'],
    [{ items: [{ role: 'developer', content: 'x' }] }, 'items[0].role'],
    [{ items: [seed[0], { type: 'function_call_output', call_id: 'c1', output: '' }] }, 'items[1]'],
    [{ items: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,' }] }] }, 'items[0].content[0]'],
  ] as const) {
    const reply = await caller.post(`/${id}/items`, body);
    t.equal(reply.status, 400, JSON.stringify(body).slice(0, 60));
    t.equal(errorOf(reply).param, param);
  }
});

t.test('images can be added if the agent’s model accepts them', async (t) => {
  const { id } = await caller.create({ agent: 'seeing', id: 'album' });
  const content = [
    { type: 'input_text', text: 'See' },
    { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low', file_id: null },
  ];
  const added = bodyOf<PageBody<ItemBody>>(await caller.post(`/${id}/items`, { items: [{ role: 'user', content }] }));
  t.strictSame(added.data[0]?.content, content);
  await server.chat({ model: 'seeing', messages: [{ role: 'user', content: 'What is it?' }], session_id: 'album' });
  t.match(server.asked.messages[0], { content: [{ type: 'text' }, { type: 'image_url' }] });
});

t.test('outputs of client tools can be added to the turn that waits for them', async (t) => {
  const { id } = await caller.create({ agent: 'seeing', id: 'waiting' });
  server.models.enqueue({ toolCalls: [clockCall, { id: 'call_2', name: 'weather', arguments: {} }] });
  const asked = await server.chat({
    model: 'seeing',
    messages: [{ role: 'user', content: 'Rain?' }],
    tools: [weather],
    session_id: 'waiting',
  });
  const [{ id: callId }] = (asked.body as { choices: [{ message: { tool_calls: [{ id: string }] } }] }).choices[0].message
    .tool_calls;
  t.strictSame(
    (await caller.items(id)).map(({ type, call_id, status }) => [type, call_id, status]),
    [
      ['message', undefined, 'completed'],
      ['mcp_call', undefined, 'completed'],
      ['function_call', callId, 'completed'],
    ],
  );
  const wrong = await caller.post(`/${id}/items`, { items: [{ type: 'function_call_output', call_id: 'call_1', output: '' }] });
  t.match(errorOf(wrong), { param: 'items[0].call_id' });
  bodyOf(await caller.post(`/${id}/items`, { items: [{ type: 'function_call_output', call_id: callId, output: 'Rain' }] }));
  t.match((await caller.items(id)).at(-1), { type: 'function_call_output', call_id: callId, output: 'Rain' });
});

t.test('C-005 single items cannot be deleted', async (t) => {
  const { id } = await caller.create({ items: seed });
  const [item] = await caller.items(id);
  const allow = async (method: string, path: string) => {
    const reply = await caller.send(method, path);
    t.equal(reply.status, 405, `${method} ${path}`);
    t.equal(errorOf(reply).code, 'method_not_supported');
    return reply.headers.get('allow');
  };
  t.equal(await allow('DELETE', `/${id}/items/${item?.id}`), 'GET, HEAD, OPTIONS');
  t.equal(await allow('DELETE', ''), 'GET, HEAD, POST, OPTIONS');
  t.equal(await allow('PUT', `/${id}`), 'GET, HEAD, POST, DELETE, OPTIONS');
  t.equal(await allow('GET', `/${id}/fork`), 'POST, OPTIONS');
  t.equal(await allow('GET', `/${id}/cancel`), 'POST, OPTIONS');
  t.equal((await caller.get(`/${id}/turns`)).status, 404);
  t.equal((await caller.send('HEAD', `/${id}`)).status, 200);
});

t.test('a conversation is forked in whole turns', async (t) => {
  const { id } = await caller.create({ id: 'trunk', items: seed, metadata: { topic: 'x' } });
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
  const busy = await caller.post(`/${id}/items`, { items: seed });
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
  const { id } = await caller.create({ id: 'doomed', items: seed });
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
  const { id } = await caller.create({ id: 'by-id', items: seed });
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
