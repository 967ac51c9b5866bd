import type { ModelRequest } from '@plugboard/kernel';
import { modelConnectorContract, modelRequest, pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { CLOCK, open, pausing, readAll, readError, runEventLoop, WHOLE } from './connection.js';

t.test('fulfils the plugin contract', async (t) => {
  const options = { packageDir: new URL('..', import.meta.url), config: { model: 'gpt-test' }, entry: 'models.fast' };
  pluginContract(t.test, plugin, options);
});

t.test('fulfils the model connector contract', async (t) => {
  const { server, connector } = await open(t);
  server.respond(({ body }) => {
    if (body.tools)
      return { toolCalls: ['UTC', 'CET'].map((zone) => ({ name: 'clock', arguments: ['{"zone"', `:"${zone}"`, '}'] })) };
    return { text: body.stream ? pausing('One', ' "two"\n', 'trois é') : 'One "two"\ntrois é' };
  });
  const samples = { text: modelRequest('Count'), toolCall: modelRequest('Time?', { tools: [CLOCK] }) };
  const refusing = await open(t);
  refusing.server.respond(() => ({ status: 503 }));
  const failing = () => {
    const before = refusing.server.requests.length;
    return { connector: refusing.connector, requests: () => refusing.server.requests.length - before };
  };
  modelConnectorContract(t.test, { open: () => connector, ...samples, failing });
});

t.test('requests a stream with usage for an incremental reader', async (t) => {
  const { server, ...connection } = await open(t, { headers: { 'X-Team': 'blue', Accept: 'text/event-stream' } });
  const messages: ModelRequest['messages'] = [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
      ],
    },
  ];
  const strict = { ...CLOCK, name: 'strict', strict: true };
  const params = { temperature: 0.2, stop: ['x'], tool_choice: 'auto' };
  await readAll(connection, { messages, tools: [CLOCK, strict], params, headers: { traceparent: '00-1', 'X-Team': 'red' } });
  const [request] = server.requests;
  t.equal(request?.path, '/v1/chat/completions');
  t.strictSame(request?.body, {
    model: 'gpt-test',
    messages,
    temperature: 0.2,
    stop: ['x'],
    tool_choice: 'auto',
    tools: [
      {
        type: 'function',
        function: { name: 'clock', description: 'Tells the time.', parameters: { type: 'object', properties: {} } },
      },
      {
        type: 'function',
        function: {
          name: 'strict',
          description: 'Tells the time.',
          parameters: { type: 'object', properties: {} },
          strict: true,
        },
      },
    ],
    stream: true,
    stream_options: { include_usage: true },
  });
  t.match(request?.headers, {
    'content-type': 'application/json',
    authorization: 'Bearer sk-very-secret',
    accept: 'text/event-stream',
    'x-team': 'red',
    traceparent: '00-1',
    'user-agent': 'plugboard',
  });
});

t.test('requests one JSON object otherwise, and sends no tool parameters without tools', async (t) => {
  const { server, ...connection } = await open(t, { apiKey: '' });
  await readAll(connection, { ...WHOLE, params: { tool_choice: 'none', parallel_tool_calls: true, seed: 1 } });
  const [request] = server.requests;
  t.strictSame(request?.body, { model: 'gpt-test', messages: [{ role: 'user', content: 'Hi' }], seed: 1, stream: false });
  t.equal(request?.headers.authorization, undefined);
});

t.test('replaces half a surrogate pair in messages and tools, and sends the rest of the body as it is', async (t) => {
  const { server, ...connection } = await open(t);
  const messages = [
    { role: 'user' as const, content: 'cut off: \ud83d' },
    { role: 'user' as const, content: 'whole: 😀, and a path: C:\\udir' },
  ];
  const tools = [{ ...CLOCK, description: 'Cut off: \ud83d' }];
  for (let times = 0; times < 2; times++) await readAll(connection, { ...WHOLE, messages, tools });
  for (const { body } of server.requests) {
    t.match(body, {
      messages: [{ content: 'cut off: \ufffd' }, { content: 'whole: 😀, and a path: C:\\udir' }],
      tools: [{ function: { description: 'Cut off: \ufffd' } }],
    });
  }
  t.equal(server.requests.length, 2);
});

t.test('reuses a socket for the next request, whatever the status', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({}, {}, { status: 500 });
  await readAll(connection);
  await runEventLoop();
  await readAll(connection, WHOLE);
  await runEventLoop();
  await readError(connection);
  await runEventLoop();
  await readAll(connection);
  t.same(
    server.requests.map((request) => request.connection),
    [1, 1, 1, 1],
  );
  t.equal(connection.clock.pending, 0, 'no timer is left');
});

t.test('takes the protocol’s sampling parameters and no others', async (t) => {
  const { connector } = await open(t);
  for (const name of ['temperature', 'max_tokens', 'response_format', 'tool_choice', 'parallel_tool_calls', 'seed'])
    t.ok(connector.supportsParam(name));
  for (const name of ['model', 'messages', 'tools', 'stream', 'n', 'user', 'store', 'top_k', 'toString'])
    t.notOk(connector.supportsParam(name));
});

t.test('C-104 a piece of a streamed call comes before the model has completed it', async (t) => {
  const { server, connector } = await open(t);
  const gate = Promise.withResolvers<void>();
  server.respond(() => ({ toolCalls: [{ id: 'a', name: 'clock', arguments: ['{"zone"', gate.promise, ':"UTC"}'] }] }));
  const request = modelRequest('Time?', { tools: [CLOCK], streamedTools: ['clock'] });
  const events = connector.stream(request, new AbortController().signal)[Symbol.asyncIterator]();
  t.strictSame((await events.next()).value, [{ type: 'tool-call-delta', id: 'a', name: 'clock', arguments: '{"zone"' }]);
  gate.resolve();
  t.match((await events.next()).value, [{ type: 'tool-call', id: 'a', arguments: '{"zone":"UTC"}' }, {}, { type: 'end' }]);
  const whole = await readAll({ connector }, { ...request, incremental: false });
  t.notOk(
    whole.some(({ type }) => type === 'tool-call-delta'),
    'an answer that is read whole has no pieces',
  );
});
