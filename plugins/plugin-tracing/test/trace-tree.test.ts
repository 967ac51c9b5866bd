import t from 'tap';
import { WebSocket } from 'ws';
import { tracedServer } from './traced-server.js';

const MODELS = (url: string) => ({
  primary: { use: 'openai', baseUrl: url, model: 'large', provider: 'moonshot' },
  spare: { use: 'openai', baseUrl: url, model: 'small', provider: 'bedrock' },
});

const CALL = { toolCalls: [{ id: 'call_7', name: 'clock', arguments: { timeZone: 'UTC' } }] };

t.test('OB-1 OB-3 OB-5 a turn with a tool, a retry and a fallback is one tree', async (t) => {
  const traced = await tracedServer(t, {
    config: { tools: { clock: {} } },
    agent: { model: ['primary', 'spare'], tools: ['clock'], params: { temperature: 0.5, max_completion_tokens: 90 } },
    models: MODELS,
  });
  const { collector, model, ask, stop } = traced;
  model.enqueue(
    { status: 429 },
    { ...CALL, usage: { promptTokens: 100, completionTokens: 10, cachedTokens: 60 } },
    { status: 401 },
    { text: ['It is ', 'noon.'], usage: { promptTokens: 120, completionTokens: 4, reasoningTokens: 3 } },
  );
  const response = await ask({ stream: true }, { 'user-agent': 'probe/1' });
  t.match(await response.text(), /noon/);
  await stop();

  t.equal(
    collector.tree(({ name, attributes }) =>
      [name, attributes['plugboard.attempt'], attributes['error.type']].filter(Boolean).join(' '),
    ),
    `POST /v1/chat/completions
  invoke_agent helper
    chat large 1 rate_limited
    chat large 2
    execute_tool clock
    chat large 1 model_failed
    chat small 2`,
  );
  t.equal(new Set(collector.spans.map(({ traceId }) => traceId)).size, 1);
  t.strictSame([...new Set(collector.spans.map(({ scope }) => scope))], ['@plugboard/plugin-tracing']);
  t.equal(collector.spans[0]?.resource['service.name'], 'plugboard');
  t.equal(collector.requests[0]?.path, '/v1/traces');

  const request = collector.one('POST /v1/chat/completions');
  t.match(request, {
    kind: 'SERVER',
    isError: false,
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'url.path': '/v1/chat/completions',
      'user_agent.original': 'probe/1',
      'plugboard.request.id': response.headers.get('x-request-id'),
      'plugboard.project': 'default',
    },
  });
  const turn = collector.one('invoke_agent helper');
  t.match(turn, { kind: 'INTERNAL', isError: false });
  const { 'plugboard.turn.id': turnId, 'plugboard.queue.duration': queued, ...said } = turn.attributes;
  t.match(turnId, /^turn_/);
  t.equal(typeof queued, 'number');
  t.strictSame(said, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'helper',
    'gen_ai.provider.name': 'moonshot_ai',
    'gen_ai.request.model': 'large',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 220,
    'gen_ai.usage.output_tokens': 14,
    'gen_ai.usage.cache_read.input_tokens': 60,
    'gen_ai.usage.reasoning.output_tokens': 3,
  });
  const { 'gen_ai.response.time_to_first_chunk': first, ...answered } = collector.one('chat small').attributes;
  t.ok(Number(first) > 0);
  t.strictSame(answered, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'aws.bedrock',
    'gen_ai.request.model': 'small',
    'gen_ai.request.stream': true,
    'gen_ai.request.max_tokens': 90,
    'gen_ai.request.temperature': 0.5,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 120,
    'gen_ai.usage.output_tokens': 4,
    'gen_ai.usage.reasoning.output_tokens': 3,
    'plugboard.connection': 'spare',
    'plugboard.step': 2,
    'plugboard.attempt': 2,
  });
  t.strictSame(collector.one('chat small').kind, 'CLIENT');
  const { 'gen_ai.tool.call.id': callId, ...called } = collector.one('execute_tool clock').attributes;
  t.match(callId, /^call_/);
  t.strictSame(called, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'clock',
    'gen_ai.tool.type': 'function',
    'plugboard.tool.entry': 'clock',
  });
  for (const name of ['input_tokens', 'output_tokens']) {
    const sum = collector.spans
      .filter((span) => span.name.startsWith('chat '))
      .reduce((total, { attributes }) => total + Number(attributes[`gen_ai.usage.${name}`] ?? 0), 0);
    t.equal(sum, turn.attributes[`gen_ai.usage.${name}`], `the sum of ${name}`);
  }
});

t.test('a tool that fails, and one that does not exist, are errors of their own spans alone', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, {
    config: { tools: { clock: {} } },
    agent: { tools: ['clock'] },
  });
  model.enqueue(
    {
      toolCalls: [
        { name: 'clock', arguments: { timeZone: 'Mars/Olympus' } },
        { name: 'nonsense', arguments: {} },
      ],
    },
    { text: 'Sorry.' },
  );
  await (await ask()).text();
  await stop();
  for (const name of ['clock', 'nonsense']) {
    t.match(collector.one(`execute_tool ${name}`), { isError: true, attributes: { 'error.type': 'tool_error' } });
  }
  t.match(collector.one('invoke_agent helper'), { isError: false });
});

t.test('a turn that fails has the code of its failure, and the request its status', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t);
  model.enqueue({ status: 401 });
  t.equal((await ask()).status, 502);
  await stop();
  t.match(collector.one('invoke_agent helper'), { isError: true, attributes: { 'error.type': 'model_failed' } });
  t.match(collector.one('POST /v1/chat/completions'), { isError: true, attributes: { 'error.type': '502' } });
  t.notOk('gen_ai.response.finish_reasons' in collector.one('invoke_agent helper').attributes);
});

t.test('a mistake of the caller is not an error of the server', async (t) => {
  const { collector, server, ask, stop } = await tracedServer(t);
  t.equal((await ask({ messages: 'none' })).status, 400);
  t.equal((await fetch(`${server.url}/nowhere?secret=1`)).status, 404);
  await stop();
  const { attributes, isError } = collector.one('POST /v1/chat/completions');
  t.notOk(isError);
  t.equal(attributes['http.response.status_code'], 400);
  const unknown = collector.one('GET').attributes;
  t.equal(unknown['url.path'], '/nowhere', 'without the query');
  t.notOk('http.route' in unknown);
});

t.test('OB-1 a summary is a model call of its turn, with the step 0', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, { agent: { history: { policy: 'summarize', maxMessages: 4 } } });
  model.respond({ text: 'Fine.', usage: { promptTokens: 10, completionTokens: 2 } });
  for (let turn = 0; turn < 4; turn++) await (await ask({ user: 'anna' })).text();
  await stop();
  const summaries = collector.named('chat scripted').filter(({ attributes }) => attributes['plugboard.step'] === 0);
  t.ok(summaries.length > 0, collector.tree());
  for (const { parent } of summaries) {
    const turn = collector.spans.find(({ spanId }) => spanId === parent);
    t.equal(turn?.attributes['gen_ai.usage.input_tokens'], 20, 'the summary counts');
  }
  const conversations = new Set(
    collector.named('invoke_agent helper').map(({ attributes }) => attributes['gen_ai.conversation.id']),
  );
  t.equal(conversations.size, 1);
  t.match([...conversations][0], /^conv_[0-9a-f]{40}$/);
  t.notMatch(JSON.stringify(collector.spans.map(({ attributes }) => attributes)), /anna/);
});

t.test('OB-3 parallel turns with tools do not mix their parents up', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, {
    config: { tools: { clock: {} } },
    agent: { tools: ['clock'] },
  });
  const traceIds = Array.from({ length: 40 }, (_, at) => String(at + 1).padStart(32, '0'));
  const [first, second] = [lastFirst(traceIds.length), lastFirst(traceIds.length)];
  model.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool' ? { text: ['a', second(), 'b'] } : { before: first(), ...CALL },
  );
  await Promise.all(
    traceIds.map(async (id) => (await ask({ stream: true }, { traceparent: `00-${id}-00f067aa0ba902b7-01` })).text()),
  );
  await stop();
  const byId = new Map(collector.spans.map((span) => [span.spanId, span]));
  for (const id of traceIds) {
    const spans = collector.spans.filter(({ traceId }) => traceId === id).toSorted((a, b) => Number(a.start - b.start));
    t.strictSame(
      spans.map((span) => [span.name, byId.get(span.parent ?? '')?.name ?? span.parent]),
      [
        ['POST /v1/chat/completions', '00f067aa0ba902b7'],
        ['invoke_agent helper', 'POST /v1/chat/completions'],
        ['chat scripted', 'invoke_agent helper'],
        ['execute_tool clock', 'invoke_agent helper'],
        ['chat scripted', 'invoke_agent helper'],
      ],
    );
    t.equal(new Set(spans.slice(1).map(({ parent }) => byId.get(parent ?? '')?.traceId)).size, 1);
  }
});

t.test('a turn of a socket has no parent, and a link to the upgrade', async (t) => {
  const { collector, model, server, stop } = await tracedServer(t, {
    config: { transports: { http: { port: 0 }, responses: {}, websocket: {}, conversations: {} } },
  });
  model.respond({ text: 'Hello.' });
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/responses`);
  t.teardown(() => socket.terminate());
  await new Promise((resolve) => socket.once('open', resolve));
  for (let turn = 0; turn < 2; turn++) {
    const completed = new Promise<void>((resolve) => {
      socket.on('message', (data) => /response.completed/.test(String(data)) && resolve());
    });
    socket.send(JSON.stringify({ type: 'response.create', model: 'helper', input: 'Hi' }));
    await completed;
  }
  socket.close();
  await stop();
  const upgrade = collector.one('GET /v1/responses');
  t.equal(upgrade.attributes['http.response.status_code'], 101);
  const turns = collector.named('invoke_agent helper');
  t.equal(turns.length, 2);
  for (const turn of turns) {
    t.equal(turn.parent, undefined);
    t.strictSame(turn.links, [upgrade.spanId]);
  }
  t.equal(new Set([upgrade, ...turns].map(({ traceId }) => traceId)).size, 3);
});

/** Returns promises that all wait for the last one, and then resolve from the last to the first. */
function lastFirst(count: number): () => Promise<void> {
  const waiting: (() => void)[] = [];
  return () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    if (waiting.length === count) for (const release of waiting.toReversed()) release();
    return promise;
  };
}
