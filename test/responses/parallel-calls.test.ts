/** Calls that run at the same time: what each surface shows of one, while another one runs. */
import t from 'tap';
import { bodyOf, type ConversationBody, type PageBody } from '../support/conversations.js';
import { type LiveEvent, LiveSocket } from '../support/live-socket.js';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

/** Three tools: one that ends when a test says so, one that ends at once, and one that fails. */
const RACE = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'race', apiVersion: 1, summary: 'Three tools', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: {} };
      const tool = (name, run) => ({ name, effect: 'read', description: name, inputSchema, run });
      const tools = [
        tool('slow', () => globalThis.raceIsOver.then(() => 'slow result')),
        tool('quick', () => 'quick result'),
        tool('broken', () => { throw new Error('out of order'); }),
      ];
      ctx.contribute(ToolSources, { tools: () => tools });
    },
  });
`;

const server = await TestServer.start(
  t,
  `${TRANSPORTS}  responses: {}
  websocket: {}
  messages: {}
  conversations: {}
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" } }
tools: { race: { use: ./race.mjs } }
agents: { racer: { model: fast, tools: [race] } }
`,
  { files: { 'race.mjs': RACE } },
);

/** Scripts a step with two calls. @returns what lets the slow one end. */
function start(other = 'quick'): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  Object.assign(globalThis, { raceIsOver: promise });
  server.models.enqueue(
    {
      toolCalls: [
        { name: 'race__slow', arguments: {} },
        { name: `race__${other}`, arguments: {} },
      ],
    },
    { text: 'Done.' },
  );
  return resolve;
}

/** The results in the order in which a text has them. */
function orderIn(text: string): readonly string[] {
  return [...text.matchAll(/(slow|quick) result/g)]
    .map(([, name = '']) => name)
    .filter((name, at, all) => all.indexOf(name) === at);
}

t.test('R-047 a call that has ended is shown while another one runs', async (t) => {
  const ask = { model: 'racer', input: 'Go', messages: [{ role: 'user', content: 'Go' }], max_tokens: 99 };
  for (const [path, end] of [
    ['/v1/responses', 'response.completed'],
    ['/v1/messages', 'message_stop'],
  ] as const) {
    const finish = start();
    const stream = await server.open(ask, { 'anthropic-beta': 'mcp-client-2025-04-04' }, path);
    await stream.until('quick result'); // ends only if the result comes before `finish`
    t.notMatch(stream.received, 'slow result', path);
    finish();
    await stream.until(end);
    t.strictSame(orderIn(stream.received.split(end)[0] ?? ''), ['quick', 'slow'], path);
    t.match(server.asked.messages.slice(-2), [{ content: 'slow result' }, { content: 'quick result' }], path);
  }
});

t.test('R-047 a socket shows it too, and the items keep the order of the calls', async (t) => {
  const finish = start();
  const socket = await LiveSocket.open(t, server);
  socket.send({ type: 'response.create', model: 'racer', input: 'Go' });
  const [done] = (await socket.until('response.output_item.done')).slice(-1);
  t.match(done, { output_index: 1, item: { type: 'mcp_call', name: 'quick', output: 'quick result' } });
  finish();
  const end = (await socket.until('response.completed')).at(-1);
  t.match(end?.response?.output, [{ output: 'slow result' }, { output: 'quick result' }, { type: 'message' }]);
});

/** What the events of a turn add up to. */
function factsOf(events: readonly LiveEvent[]) {
  const facts: Record<string, unknown> = {};
  const parts = { steps: [] as object[], calls: [] as object[] };
  for (const { type, sequence_number, at_ms, steps, calls, ...head } of events as readonly Progress[]) {
    if (type !== 'svc:turn.progress') continue;
    Object.assign(facts, head);
    for (const { index, ...step } of steps) parts.steps[index] = step;
    for (const { index, ...call } of calls) parts.calls[index] = call;
  }
  return { ...facts, ...parts };
}

interface StoredTurn {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly incomplete_details: object | null;
  readonly steps: readonly object[];
  readonly calls: readonly object[];
}

interface Progress extends LiveEvent {
  readonly steps: readonly { readonly index: number }[];
  readonly calls: readonly { readonly index: number; readonly name: string; readonly status: string }[];
}

t.test('C-240 the parts of a turn arrive while it runs, and are those that its session keeps', async (t) => {
  const finish = start('broken');
  const socket = await LiveSocket.open(t, server, { path: '/v1/live?conversation=none' });
  socket.send({ type: 'response.create', model: 'racer', input: 'Go', conversation: 'timed' });
  const events: LiveEvent[] = [];
  const isFailed = (event: LiveEvent | undefined) => (event as Progress).calls.some(({ status }) => status === 'failed');
  do events.push(...(await socket.until('svc:turn.progress')));
  while (!isFailed(events.at(-1)));
  t.match(factsOf(events), {
    turn: 1,
    queued_ms: Number,
    duration_ms: null,
    steps: [{ connection: 'fast', start_ms: Number, first_token_ms: Number, duration_ms: Number }],
    calls: [
      { name: 'slow', status: 'in_progress', duration_ms: null },
      { name: 'broken', status: 'failed', duration_ms: Number },
    ],
  });
  t.match(factsOf(events).calls, [{ item_id: /^mcp_.+_0$/ }, { item_id: /^mcp_.+_1$/ }]);
  finish();
  events.push(...(await socket.until('response.completed')));
  const [session] = bodyOf<PageBody<ConversationBody>>(await server.get('/v1/conversations')).data;
  const [turn] = bodyOf<PageBody<StoredTurn>>(await server.get(`/v1/conversations/${session?.id}/turns`)).data;
  const { id, object, status, incomplete_details, steps = [], calls = [], ...stored } = turn ?? {};
  const without = (parts: readonly object[], ...names: string[]) =>
    parts.map((part) => Object.fromEntries(Object.entries(part).filter(([name]) => !names.includes(name))));
  const facts = factsOf(events);
  t.strictSame(
    { ...facts, calls: without(facts.calls, 'item_id') },
    {
      ...stored,
      steps: without(steps, 'reasoning'),
      calls: without(calls, 'item_id', 'error'),
    },
  );
});

t.test('C-240 a turn that fails or is cancelled says how long its parts took', async (t) => {
  const socket = await LiveSocket.open(t, server, { path: '/v1/live?conversation=none' });
  const finish = start();
  socket.send({ type: 'response.create', model: 'racer', input: 'Go', store: false });
  const begun = await socket.until('response.output_item.done');
  socket.send({ type: 'response.cancel', response_id: begun[0]?.response?.id });
  const events = [...begun, ...(await socket.until('response.incomplete'))];
  t.match(factsOf(events), {
    turn: null,
    duration_ms: Number,
    steps: [{ duration_ms: Number }],
    calls: [{ status: 'incomplete' }, { status: 'completed' }],
  });
  finish();
  server.models.enqueue({ status: 400, body: { error: { message: 'no' } } });
  socket.send({ type: 'response.create', model: 'racer', input: 'Go' });
  await socket.until('response.completed'); // the answer that the cancelled turn left
  socket.send({ type: 'response.create', model: 'racer', input: 'Go' });
  t.match(factsOf(await socket.until('response.failed')), { duration_ms: Number, steps: [], calls: [] });
});
