/** What a request may hold, and what the model receives of it. */
import t, { type Test } from 'tap';
import { liveConfig } from '../support/live.js';
import { type LiveResponseBody, LiveSocket } from '../support/live-socket.js';
import { askedContents, created, respond } from '../support/respond.js';
import { ASSISTANT, type Reply, TestServer } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

const errorOf = ({ body }: Reply) => (body as { error: Record<string, unknown> }).error;

const WEATHER = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } };
const weatherCall = { id: 'call_weather', name: 'weather', arguments: '{}' };
const weatherOutput = { type: 'function_call_output', call_id: 'call_weather', output: 'Sun.' };

/** The result of the caller's own call in a response. */
function outputFor({ output }: LiveResponseBody): object {
  return { ...weatherOutput, call_id: output.find(({ type }) => type === 'function_call')?.call_id };
}

const withTools = (t: Test, visibility: string) =>
  TestServer.start(
    t,
    WITH_TOOLS.replace('  sse: {}\n', '  sse: {}\n  responses: {}\n  websocket: {}\n').replace(
      'tools: [clock, "files/*"]',
      `tools: [clock, "files/*"], toolVisibility: ${visibility}`,
    ),
    toolFixtures,
  );

/** The calls and results that the model received last, in order. */
function callsAsked(app: TestServer): readonly string[] {
  return app.asked.messages.flatMap((message) => {
    const { tool_calls: calls = [], tool_call_id: answered } = message as {
      tool_calls?: readonly { id: string; function: { name: string } }[];
      tool_call_id?: string;
    };
    return answered === undefined ? calls.map((call) => `${call.id} ${call.function.name}`) : [`${answered} =`];
  });
}

/** Every call has one result behind it, and every result its call. */
function assertPaired(t: Test, calls: readonly string[]): void {
  const ids = (one: (call: string) => boolean) =>
    calls
      .filter(one)
      .map((call) => call.split(' ')[0])
      .toSorted();
  const isResult = (call: string) => call.endsWith(' =');
  t.same(
    ids((call) => !isResult(call)),
    ids(isResult),
    calls.join(', '),
  );
  t.equal(new Set(ids(isResult)).size, calls.filter(isResult).length, 'no result comes twice');
}

for (const visibility of ['full', 'names', 'none']) {
  for (const together of [true, false]) {
    const name = `${together ? 'in one step' : 'in two steps'}, ${visibility}`;
    const script = together
      ? [{ toolCalls: [readTreasure, weatherCall] }]
      : [{ toolCalls: [readTreasure] }, { toolCalls: [weatherCall] }];
    const expected = ['files__read_text_file', 'weather'];

    t.test(`C-236 calls of the agent and of the caller ${name}: over HTTP each reaches the model once`, async (t) => {
      const app = await withTools(t, visibility);
      app.models.enqueue(...script);
      const input: object[] = [{ role: 'user', content: 'Treasure and weather?' }];
      const first = await created(app, { store: false, tools: [WEATHER], input });
      input.push(...first.output, outputFor(first));
      await created(app, { store: false, tools: [WEATHER], input });
      const calls = callsAsked(app);
      assertPaired(t, calls);
      t.same(
        calls.filter((call) => !call.endsWith(' =')).map((call) => call.split(' ')[1]),
        expected,
      );
      t.match(JSON.stringify(app.asked.messages), 'under the oak');
    });

    t.test(`C-236 calls of the agent and of the caller ${name}: on a socket each reaches the model once`, async (t) => {
      const app = await withTools(t, visibility);
      app.models.enqueue(...script);
      const live = await LiveSocket.open(t, app);
      const first = await live.ask({ model: 'assistant', store: false, tools: [WEATHER], input: 'Treasure and weather?' });
      const request = { model: 'assistant', store: false, tools: [WEATHER], previous_response_id: first.id };
      const second = await live.ask({ ...request, input: [outputFor(first)] });
      const calls = callsAsked(app);
      assertPaired(t, calls);
      t.same(
        calls.filter((call) => !call.endsWith(' =')).map((call) => call.split(' ')[1]),
        expected,
      );
      await live.ask({ ...request, previous_response_id: second.id, input: 'And then?' });
      t.same(callsAsked(app), calls, 'a later step shows the same calls');
    });
  }
}

t.test('C-236 results that answer no call are a 400 that names the item, stored or not', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const store of [true, false]) {
    const first = await created(app, { input: 'x' });
    const continued = { store, previous_response_id: first.id, input: [{ role: 'developer', content: 'y' }, weatherOutput] };
    t.match(errorOf(await respond(app, continued)), { param: 'input[1].call_id' }, `continued, store: ${store}`);
    const fresh = await respond(app, { store, input: [{ role: 'user', content: 'x' }, weatherOutput] });
    t.match([fresh.status, errorOf(fresh)], [400, { param: /^input\[1\]/ }], `fresh, store: ${store}`);
  }
});

t.test('C-236 a conversation that no longer fits loses its oldest turns, or is refused, stored or not', async (t) => {
  const agents = ASSISTANT.replace('apiKey:', 'contextWindow: 2000, apiKey:');
  const app = await TestServer.start(t, liveConfig('{}', agents));
  const long = 'word '.repeat(500);
  for (const store of [true, false]) {
    const live = await LiveSocket.open(t, app, { path: '/v1/responses?conversation=connection' });
    await live.ask({ model: 'assistant', store, input: `first ${long}` });
    await live.ask({ model: 'assistant', store, input: `second ${long}` });
    await live.ask({ model: 'assistant', store, input: `third ${long}` });
    const asked = JSON.stringify(app.asked.messages);
    t.notMatch(asked, 'first', `store: ${store}`);
    t.match(asked, 'third');
    live.create({ model: 'assistant', store, truncation: 'disabled', input: `fourth ${long}` });
    t.match((await live.turn()).at(-1), { response: { status: 'failed', error: { code: 'context_length_exceeded' } } });
  }
  const refused = await respond(app, { truncation: 'disabled', input: 'word '.repeat(3_000) });
  t.match([refused.status, errorOf(refused)], [400, { code: 'context_length_exceeded', param: 'input' }]);
});

t.test('instructions alone are accepted, stored or not, and can be continued', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const store of [true, false]) {
    const live = await LiveSocket.open(t, app, { path: '/v1/responses?conversation=connection' });
    await live.ask({ model: 'assistant', store, input: [{ role: 'developer', content: 'Say hello.' }] });
    t.match(app.asked.messages, [{ role: 'system' }, { role: 'user', content: 'Say hello.' }]);
    await live.ask({ model: 'assistant', store, input: 'And now?' });
    t.same(askedContents(app), ['Say hello.', 'Say hello.', 'And now?']);
  }
});

t.test('a failed call of the agent that comes back keeps its error', async (t) => {
  const app = await withTools(t, 'full');
  app.models.enqueue({ toolCalls: [{ ...readTreasure, arguments: { path: 'missing.txt' } }] });
  const { output } = await created(app, { store: false, input: 'Read it.' });
  t.match(output[0], { type: 'mcp_call', status: 'failed', output: null });
  await created(app, {
    store: false,
    input: [{ role: 'user', content: 'Read it.' }, ...output, { role: 'user', content: 'Why?' }],
  });
  t.match(app.asked.messages.find(({ role }) => role === 'tool')?.content, /missing\.txt|ENOENT|denied|no such file/i);
});

t.test('C-237 the items of a request are listed, of a response that runs, is stored, or failed', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const input = [
    { role: 'developer', content: 'Be short.' },
    { role: 'user', content: [{ type: 'input_text', text: 'One' }] },
    { role: 'assistant', content: 'Two' },
    { role: 'user', content: 'Three' },
  ];
  const list = async (id: string, query = '') => (await app.get(`/v1/responses/${id}/input_items${query}`)).body as ItemList;
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['So', gate.promise] });
  const live = await LiveSocket.open(t, app);
  live.create({ model: 'assistant', input });
  const [start] = await live.until('response.output_text.delta');
  const id = start?.response?.id ?? '';
  const running = await list(id, '?order=asc');
  t.match(running, {
    object: 'list',
    has_more: false,
    data: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be short.' }] },
      { content: [{ type: 'input_text', text: 'One' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Two' }] },
      { role: 'user', content: [{ type: 'input_text', text: 'Three' }] },
    ],
  });
  gate.resolve();
  await live.turn();
  t.same(await list(id, '?order=asc'), running);
  t.same(
    (await list(id)).data.map((item) => item.id),
    running.data.map((item) => item.id).toReversed(),
    'the newest first',
  );
  const page = await list(id, '?order=asc&limit=2');
  t.match(page, { has_more: true, first_id: running.data[0]?.id, last_id: running.data[1]?.id });
  t.same((await list(id, `?order=asc&after=${page.last_id}`)).data, running.data.slice(2));
  t.match((await app.get(`/v1/responses/${id}/input_items?after=nope`)).status, 400);
  t.equal((await app.get(`/v1/responses/resp_${'0'.repeat(24)}/input_items`)).status, 404);
});

interface ItemList {
  readonly data: readonly { readonly id: string }[];
  readonly last_id: string;
}

t.test('`max_tool_calls` counts calls of the agent only', async (t) => {
  const app = await withTools(t, 'full');
  const request = { tools: [WEATHER], max_tool_calls: 1, input: 'x' };
  const types = ({ output }: LiveResponseBody) => output.map(({ type }) => type);
  app.models.enqueue({ toolCalls: [readTreasure] }, { toolCalls: [weatherCall] });
  const later = await created(app, request);
  t.match([later.status, types(later)], ['completed', ['mcp_call', 'function_call']]);
  app.models.enqueue({ toolCalls: [readTreasure, weatherCall, { ...weatherCall, id: 'call_2' }] });
  const together = await created(app, request);
  t.match([together.status, types(together)], ['completed', ['mcp_call', 'function_call', 'function_call']]);
  app.models.enqueue({ toolCalls: [readTreasure] }, { toolCalls: [{ name: 'clock', arguments: {} }] });
  t.match(await created(app, request), { status: 'incomplete', incomplete_details: { reason: 'max_tool_calls' } });
});
