import t from 'tap';
import {
  bodyOf,
  type ItemBody,
  type PageBody,
  SEED,
  SEVERAL_AGENTS,
  startWithConversations,
} from '../../support/conversations.js';
import { errorOf, saying } from '../../support/test-server.js';

const { server, caller } = await startWithConversations(t, SEVERAL_AGENTS);

const clockCall = { id: 'call_1', name: 'clock', arguments: { timeZone: 'UTC' } };
const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } };

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
    ...SEED,
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
    [{ items: Array(21).fill(SEED[0]) }, 'items'],
    [{ items: [{ role: 'developer', content: 'x' }] }, 'items[0].role'],
    [{ items: [SEED[0], { type: 'function_call_output', call_id: 'c1', output: '' }] }, 'items[1].call_id'],
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
  const { id } = await caller.create({ items: SEED });
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
  t.equal((await caller.get(`/${id}/messages`)).status, 404);
  t.equal((await caller.send('HEAD', `/${id}`)).status, 200);
});
