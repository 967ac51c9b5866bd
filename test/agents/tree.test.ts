import t from 'tap';
import { Samples } from '../../plugins/plugin-metrics/test/samples.js';
import { Collector } from '../../plugins/plugin-tracing/test/collector.js';
import { RecordedServer } from '../record/support.js';
import { type LiveEvent, LiveSocket } from '../support/live-socket.js';
import { TestServer } from '../support/test-server.js';
import { CALLS, playTree, TREE, tokensOf } from './tree.js';

interface Nested {
  readonly item_id: string;
  readonly agent: string;
  readonly event: { readonly type: string; readonly id?: string; readonly text?: string };
}

interface NestedFacts {
  readonly agent: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  readonly steps: readonly { readonly connection: string }[];
  readonly calls: readonly CallFacts[];
}

interface CallFacts {
  readonly item_id: string;
  readonly server_label: string;
  readonly status: string;
  readonly nested?: NestedFacts;
}

const PRICES = Object.keys(CALLS)
  .map((model) => `${model}: { input: 1, output: 1 }`)
  .join(', ');

t.test('AG-4 AG-5 AG-13 a root, two children and a grandchild: events, record, trace, usage and recordings', async (t) => {
  const collector = await Collector.start(t);
  const plugins = `
plugins:
  record: {}
  tracing: { endpoint: "${collector.endpoint}" }
  metrics: { port: 0 }
  usage: { prices: { ${PRICES} } }
`;
  const server = await RecordedServer.start(t, TREE + plugins);
  const { app } = server;
  playTree(app.models);
  const socket = await LiveSocket.open(t, app, { path: '/v1/responses?events=svc' });
  socket.create({ model: 'root', input: 'Report on bees', conversation: 'bees' });
  const events = await socket.turn();
  const total = tokensOf();

  await t.test('the events on the socket', async (t) => {
    const nested = events.filter(({ type }) => type === 'svc:nested') as unknown as Nested[];
    const items = new Map(itemsOf(events).map(({ id, server_label }) => [id, server_label]));
    const [read] = nested.filter(({ agent, event }) => agent === 'researcher' && event.type === 'tool_call');
    const of = (agent: string) => joined(nested.filter((one) => one.agent === agent));
    t.match(
      of('researcher').map(({ event }) => event),
      [
        { type: 'step', step: 1, connection: 'mid' },
        { type: 'text', text: 'Let me read.' },
        { type: 'tool_call', server_label: 'read', name: 'read', arguments: '{"input":"the source"}' },
        { type: 'tool_result', is_error: false },
        { type: 'step', step: 2 },
        { type: 'text', text: 'Two facts.' },
        { type: 'end', reason: 'stop' },
      ],
    );
    t.match(
      of('reader').map(({ event }) => event.type),
      ['step', 'tool_call', 'tool_result', 'step', 'text', 'end'],
    );
    t.same([...new Set(of('researcher').map(({ item_id }) => items.get(item_id)))], ['research']);
    t.same([...new Set(of('writer').map(({ item_id }) => items.get(item_id)))], ['write']);
    t.same([...new Set(of('reader').map(({ item_id }) => item_id))], [read?.event.id]);
    t.match(events.at(-1)?.response, {
      status: 'completed',
      output: [
        { type: 'mcp_call', server_label: 'research', output: 'Two facts.' },
        { type: 'mcp_call', server_label: 'write', output: 'A draft.' },
        { type: 'message', content: [{ text: 'Report done.' }] },
      ],
      usage: { input_tokens: total.input, output_tokens: total.output },
    });
  });

  await t.test('the record', async (t) => {
    const { body } = await app.get('/v1/conversations?agent=root');
    const [{ id } = { id: '' }] = (body as { data: { id: string }[] }).data;
    const turns = await app.get(`/v1/conversations/${id}/turns`);
    const [turn] = (turns.body as { data: { usage: object; calls: CallFacts[] }[] }).data;
    t.match(turn?.usage, { input_tokens: total.input, output_tokens: total.output });
    const [research, write] = turn?.calls ?? [];
    const usageOf = ({ input, output }: typeof total) => ({ input_tokens: input, output_tokens: output });
    t.match(research?.nested, {
      agent: 'researcher',
      usage: usageOf(tokensOf(['mid', 'low'])),
      steps: [{ connection: 'mid' }, { connection: 'mid' }],
      calls: [{ server_label: 'read', status: 'completed', nested: { agent: 'reader', usage: usageOf(tokensOf(['low'])) } }],
    });
    t.match(research?.nested?.calls[0]?.nested, { calls: [{ server_label: 'clock', status: 'completed' }] });
    t.notOk('nested' in (research?.nested?.calls[0]?.nested?.calls[0] ?? {}));
    t.match(write?.nested, { agent: 'writer', usage: usageOf(tokensOf(['pen'])), steps: [{ connection: 'pen' }], calls: [] });
    const live = events.filter(({ type }) => type === 'svc:turn.progress').flatMap(({ calls }) => calls as CallFacts[]);
    for (const call of [research, write]) {
      const last = live.findLast(({ server_label }) => server_label === call?.server_label);
      t.same(last?.nested, call?.nested, 'the same as on the socket');
    }
  });

  await t.test('the ledger', async (t) => {
    const { body } = await app.get('/v1/usage?by=agent');
    const { data, total: sum } = body as { data: Record<string, unknown>[]; total: object };
    t.same(data.map(({ agent, calls, input_tokens }) => [agent, calls, input_tokens]).toSorted(), [
      ['reader', 2, 14],
      ['researcher', 2, 400],
      ['root', 2, 2_000],
      ['writer', 1, 30],
    ]);
    t.match(sum, { input_tokens: total.input, output_tokens: total.output, calls: 7 });
  });

  await t.test('the metrics', async (t) => {
    const isListening = ({ plugin, msg }: { plugin?: unknown; msg?: unknown }) =>
      plugin === '@plugboard/plugin-metrics' && msg === 'listening';
    const listening = app.started.logs.find(isListening);
    const metrics = new Samples(await (await fetch(String(listening?.address))).text());
    for (const agent of ['root', 'researcher', 'writer', 'reader'])
      t.equal(metrics.value('plugboard_turns_total', { agent, status: 'stop' }), 1, agent);
    t.equal(metrics.value('gen_ai_client_inference_usage_input_tokens_total'), total.input);
    t.equal(metrics.value('gen_ai_invoke_agent_inference_calls_sum'), 7);
    t.equal(metrics.value('gen_ai_invoke_agent_tool_calls_sum'), 4);
  });

  await t.test('the recordings', async (t) => {
    const recordings = await server.recordings(4);
    const root = recordings.find(({ turn }) => turn.agent === 'root');
    const parents = new Map(recordings.map(({ turn: { agent, parent } }) => [agent, parent]));
    t.same(parents.get('root'), undefined);
    t.match(parents.get('writer'), { turn: root?.turn.id, call: root?.tools.find(({ name }) => name === 'write')?.id });
    const researcher = recordings.find(({ turn }) => turn.agent === 'researcher');
    t.match(parents.get('reader'), { turn: researcher?.turn.id, call: researcher?.tools[0]?.id });
    const { turns, same, changes, code } = await server.rehearse();
    t.strictSame({ turns, same, changes, code }, { turns: 4, same: 4, changes: [], code: 0 });
  });

  socket.ws.terminate();
  await app.stop();
  await t.test('the trace', async (t) => {
    const [turn] = collector.named('invoke_agent root');
    const spans = collector.spans.filter(({ traceId }) => traceId === turn?.traceId);
    const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
    t.same(
      spans.map(({ name, parent }) => `${names.get(parent ?? '') ?? ''} > ${name}`).toSorted(),
      [
        ' > invoke_agent root',
        'execute_tool read > invoke_agent reader',
        'execute_tool research > invoke_agent researcher',
        'execute_tool write > invoke_agent writer',
        'invoke_agent reader > chat low',
        'invoke_agent reader > chat low',
        'invoke_agent reader > execute_tool clock',
        'invoke_agent researcher > chat mid',
        'invoke_agent researcher > chat mid',
        'invoke_agent researcher > execute_tool read',
        'invoke_agent root > chat top',
        'invoke_agent root > chat top',
        'invoke_agent root > execute_tool research',
        'invoke_agent root > execute_tool write',
        'invoke_agent writer > chat pen',
      ].toSorted(),
    );
    const inputOf = (prefix: string) =>
      spans
        .filter(({ name }) => name.startsWith(prefix))
        .reduce((sum, { attributes }) => sum + Number(attributes['gen_ai.usage.input_tokens']), 0);
    t.equal(inputOf('chat '), total.input);
    t.equal(inputOf('invoke_agent '), total.input, 'each has the sum of its own calls');
  });
});

t.test('AG-5 the toolVisibility of each agent hides what its calls do, live and later', async (t) => {
  const config = TREE.replace('tools: [read]', 'tools: [read], toolVisibility: names').replace(
    'You write drafts.',
    'You write drafts., tools: [clock], toolVisibility: none',
  );
  const app = await TestServer.start(t, config);
  playTree(app.models);
  const socket = await LiveSocket.open(t, app, { path: '/v1/responses?events=svc' });
  socket.create({ model: 'root', input: 'Report on bees', conversation: 'bees' });
  const shown = (await socket.turn()).filter(({ type }) => /^svc:(?:nested|turn)/.test(type));
  const nested = shown.filter(({ type }) => type === 'svc:nested') as unknown as Nested[];
  const typesOf = (agent: string) => joined(nested.filter((one) => one.agent === agent)).map(({ event }) => event.type);
  t.same(typesOf('researcher'), ['step', 'text', 'tool_call', 'tool_result', 'step', 'text', 'end']);
  t.same(typesOf('reader'), []);
  t.same(typesOf('writer'), ['text', 'end']);
  const { body } = await app.get('/v1/conversations?agent=root');
  const [{ id } = { id: '' }] = (body as { data: { id: string }[] }).data;
  const { text } = await app.get(`/v1/conversations/${id}/turns`);
  for (const all of [text, JSON.stringify(shown)]) t.notMatch(all, /the source|noon|reader|low/);
  t.match(JSON.parse(text).data[0].calls, [
    { nested: { steps: [{}, {}], calls: [{ server_label: 'read', status: 'completed' }] } },
    { nested: { agent: 'writer', steps: [], calls: [] } },
  ]);
});

t.test('a child that was too deep to ask another agent is replayed as it was recorded', async (t) => {
  const config = TREE.replace('reader, description: Reads', 'researcher, depth: 1, description: Asks itself').replace(
    'tools: [read]',
    'tools: [read, clock]',
  );
  const server = await RecordedServer.start(t, `${config}plugins: { record: {} }\n`);
  const { app } = server;
  app.models.enqueue({ toolCalls: [{ name: 'read', arguments: { input: 'more' } }] }, { text: 'Deep.' }, { text: 'Done.' });
  await app.chat({ model: 'researcher', messages: [{ role: 'user', content: 'Ask yourself' }] });
  const tools = app.models.requests.map(({ body }) =>
    ((body.tools ?? []) as { function: { name: string } }[]).map((one) => one.function.name),
  );
  t.same(tools, [['clock', 'read'], ['clock'], ['clock', 'read']]);
  await server.files(2);
  const { same, changes } = await server.rehearse();
  t.strictSame({ same, changes }, { same: 2, changes: [] });
});

t.test('turns that a limit of the whole tree ended are replayed to the same end', async (t) => {
  const config = TREE.replace('tools: [research, write]', 'tools: [research, write], maxSteps: 3');
  for (const limits of ['maxSteps: 3', 'maxToolCalls: 2']) {
    const server = await RecordedServer.start(t, `${config.replace('maxSteps: 3', limits)}plugins: { record: {} }\n`);
    const { app } = server;
    app.models.enqueue({ toolCalls: [{ name: 'research', arguments: { input: 'bees' } }] });
    app.models.respond(({ body }) => ({
      toolCalls: [
        { name: body.model === 'mid' ? 'read' : body.model === 'low' ? 'clock' : 'write', arguments: { input: 'more' } },
      ],
    }));
    await app.chat({ model: 'root', messages: [{ role: 'user', content: 'Report' }] });
    const recordings = await server.recordings(3);
    for (const { end } of recordings)
      t.match(end, { status: 'length', limit: limits === 'maxSteps: 3' ? 'max_steps' : 'max_tool_calls' });
    const { same, changes } = await server.rehearse();
    t.strictSame({ same, changes }, { same: 3, changes: [] }, limits);
  }
});

t.test('AG-5 nothing of a child is in the text of any surface', async (t) => {
  const app = await TestServer.start(t, TREE);
  playTree(app.models);
  const message = { role: 'user', content: 'Report on bees' };
  const chat = { model: 'root', messages: [message] };
  const surfaces: readonly (readonly [string, object])[] = [
    ['/v1/chat/completions', chat],
    ['/v1/chat/completions', { ...chat, stream: true }],
    ['/v1/messages', { ...chat, max_tokens: 100 }],
    ['/v1/messages', { ...chat, max_tokens: 100, stream: true }],
    ['/v1/responses', { model: 'root', input: 'Report on bees' }],
    ['/v1/responses', { model: 'root', input: 'Report on bees', stream: true }],
  ];
  for (const [path, body] of surfaces) {
    const { status, text } = await app.request('POST', path, {}, body);
    const name = `${path} ${JSON.stringify(body)}`;
    t.equal(status, 200, name);
    t.match(text, /Report/, name);
    t.notMatch(text, /Let me read|It is noon|svc:|nested/, name);
  }
});

/** The items of a response as they began. */
function itemsOf(events: readonly LiveEvent[]): readonly { readonly id: string; readonly server_label: string }[] {
  return events
    .filter(({ type }) => type === 'response.output_item.added')
    .map(({ item }) => item as { id: string; server_label: string });
}

/** Text arrives in any number of pieces: those that follow each other become one. */
function joined(nested: readonly Nested[]): readonly Nested[] {
  const all: Nested[] = [];
  for (const one of nested) {
    const last = all.at(-1);
    if (last?.event.type === 'text' && one.event.type === 'text')
      all[all.length - 1] = { ...one, event: { type: 'text', text: `${last.event.text}${one.event.text}` } };
    else all.push(one);
  }
  return all;
}
