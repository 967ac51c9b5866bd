import { createServer } from 'node:net';
import type { ModelEvent, ModelRequest, ToolDeclaration } from '@plugboard/kernel';
import { ModelServer, modelConnectorContract, modelRequest, pluginContract } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { connect, open, plain, read, readAll, readError, rounds } from './connection.js';

const WHOLE: Partial<ModelRequest> = { incremental: false };
const CLOCK: ToolDeclaration = { name: 'clock', description: 'Tells the time.', inputSchema: { type: 'object' } };

function text(text: string): ModelEvent {
  return { type: 'text', text };
}
const STOP: ModelEvent = { type: 'end', reason: 'stop' };

/** Pieces that arrive in separate reads of the socket. */
function* pausing<T>(...pieces: readonly T[]): Generator<T | Promise<void>> {
  for (const piece of pieces) {
    yield piece;
    yield rounds();
  }
}

t.test('fulfils the plugin contract', async (t) => {
  const options = { packageDir: new URL('..', import.meta.url), config: { model: 'gpt-test' }, entry: 'models.fast' };
  for (const c of pluginContract(plugin, options)) t.test(c.name, c.run);
});

t.test('fulfils the model connector contract', async (t) => {
  const { server, connector } = await open(t);
  server.respond(({ body }) => {
    if (body.tools) return { toolCalls: ['UTC', 'CET'].map((zone) => ({ name: 'clock', arguments: { zone } })) };
    return { text: body.stream ? pausing('One', ' "two"\n', 'trois é') : 'One "two"\ntrois é' };
  });
  const samples = { text: modelRequest('Count'), toolCall: modelRequest('Time?', { tools: [CLOCK] }) };
  for (const c of modelConnectorContract(() => connector, samples)) t.test(c.name, c.run);
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
      { type: 'function', function: { name: 'clock', description: 'Tells the time.', parameters: { type: 'object' } } },
      {
        type: 'function',
        function: { name: 'strict', description: 'Tells the time.', parameters: { type: 'object' }, strict: true },
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

t.test('reads text, reasoning, refusals, tool calls and usage, streamed or not', async (t) => {
  const { server, ...connection } = await open(t);
  server.respond({
    reasoning: ['I ', 'think'],
    text: ['so', ' I "am"\n', ' é😀'],
    refusal: ' No.',
    toolCalls: [
      { id: 'one', name: 'clock', arguments: ['{"zo', 'ne":"UTC"}'] },
      { id: 'two', name: 'dice', arguments: '' },
    ],
    usage: { promptTokens: 7, completionTokens: 9, cachedTokens: 3, reasoningTokens: 2 },
  });
  const end: ModelEvent[] = [
    { type: 'tool-call', id: 'one', name: 'clock', arguments: '{"zone":"UTC"}' },
    { type: 'tool-call', id: 'two', name: 'dice', arguments: '{}' },
    { type: 'usage', usage: { promptTokens: 7, completionTokens: 9, cachedTokens: 3, reasoningTokens: 2 } },
    { type: 'end', reason: 'tool_calls' },
  ];
  const thought: ModelEvent[] = [
    { type: 'reasoning', text: 'I ' },
    { type: 'reasoning', text: 'think' },
  ];
  t.strictSame(await readAll(connection), [...thought, text('so'), text(' I "am"\n'), text(' é😀'), text(' No.'), ...end]);
  t.strictSame(await readAll(connection, WHOLE), [
    { type: 'reasoning', text: 'I think' },
    text('so I "am"\n é😀'),
    text(' No.'),
    ...end,
  ]);
});

t.test('the events of one read form one batch', async (t) => {
  const { server, ...connection } = await open(t);
  const gate = Promise.withResolvers<void>();
  server.respond({ text: ['a', 'b', 'c', gate.promise, ...'defgh'], usage: null });
  const batches: ModelEvent[][] = [];
  for await (const batch of connection.connector.stream(modelRequest('Hi'), new AbortController().signal)) {
    batches.push(batch.map(plain));
    gate.resolve();
  }
  t.strictSame(batches, [[...'abc'].map(text), [...[...'defgh'].map(text), STOP]]);
});

t.test('the first batch is not empty', async (t) => {
  const { server, ...connection } = await open(t);
  const gate = Promise.withResolvers<void>();
  server.respond({ text: [gate.promise, 'a'] });
  const reading = read(connection);
  await server.received(1);
  gate.resolve();
  t.equal((await reading).length, 1, 'the chunk with the role alone is not a batch');
});

t.test('reuses a socket for the next request, whatever the status', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({}, {}, { status: 500 });
  await readAll(connection);
  await rounds();
  await readAll(connection, WHOLE);
  await rounds();
  await readError(connection);
  await rounds();
  await readAll(connection);
  t.same(
    server.requests.map((request) => request.connection),
    [1, 1, 1, 1],
  );
  t.equal(connection.clock.pending, 0, 'no timer is left');
});

t.test('reads the form that the content type announces', async (t) => {
  const { server, ...connection } = await open(t);
  const whole = { choices: [{ index: 0, message: { role: 'assistant', content: 'whole' }, finish_reason: 'stop' }] };
  const event = { choices: [{ delta: { content: 'streamed' }, finish_reason: 'stop' }] };
  server.enqueue(
    { raw: [JSON.stringify(whole)], contentType: 'Application/JSON' },
    { raw: [`data: ${JSON.stringify(event)}\n\n`], contentType: 'text/event-stream;charset=UTF-8' },
    { raw: [`data: ${JSON.stringify(event)}\n\ndata: [DONE]`], contentType: null },
    { raw: [JSON.stringify(whole)], contentType: null },
  );
  t.strictSame(await readAll(connection), [text('whole'), STOP]);
  t.strictSame(await readAll(connection, WHOLE), [text('streamed'), STOP]);
  t.strictSame(await readAll(connection), [text('streamed'), STOP]);
  t.strictSame(await readAll(connection, WHOLE), [text('whole'), STOP]);
});

t.test('R-035 reads an event of a megabyte, and one cut into single bytes', async (t) => {
  const { server, ...connection } = await open(t);
  const big = 'é'.repeat(2 ** 19);
  server.enqueue({ text: ['a', big, big], usage: null });
  t.strictSame(await readAll(connection), [text('a'), text(big), text(big), STOP]);

  const event = Buffer.from('data:{"choices":[{"delta":{"content":"é😀"},"finish_reason":"stop"}]}\r\n\r\n');
  server.enqueue({ raw: pausing(...[...event].map((byte) => Buffer.from([byte]))) });
  t.strictSame(await readAll(connection), [text('é😀'), STOP]);
});

t.test('ignores what follows the end of the answer', async (t) => {
  const { server, ...connection } = await open(t);
  const finish = '{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}';
  server.enqueue({ raw: [`data: ${finish}\n\ndata: [DONE]\n\ndata: garbage\n\n`, 'more'] });
  t.strictSame(await readAll(connection), [text('a'), STOP]);
  await rounds();
  await readAll(connection);
  t.equal(server.requests[1]?.connection, 1, 'the socket is still usable');
});

t.test('closes a response that stays open for a second after [DONE]', async (t) => {
  const { server, clock, ...connection } = await open(t);
  const never = new Promise<void>(() => {});
  server.enqueue({ raw: ['data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n', never] });
  t.strictSame(await readAll(connection), [STOP]);
  t.equal(server.requests[0]?.state, 'open');
  clock.advance(1000);
  t.equal(await server.requests[0]?.ended, 'aborted');
  t.equal(clock.pending, 0);
});

t.test('R-010 a reader that stops reading pauses the socket', async (t) => {
  const { server, clock, connector } = await open(t);
  function* endless() {
    for (;;) {
      yield 'x'.repeat(1000);
      yield rounds(1);
    }
  }
  server.respond({ text: endless() });
  const abort = new AbortController();
  const iterator = connector.stream(modelRequest('Hi'), abort.signal)[Symbol.asyncIterator]();
  await iterator.next();
  const request = await server.received(1);
  // The server continues until every buffer between it and the reader is full.
  const settled = async () => {
    for (let sent = -1, turns = 0; turns < 200; turns++) {
      if (sent !== request.sent) turns = 0;
      sent = request.sent;
      await rounds(1);
    }
    return request.sent;
  };
  const full = await settled();
  clock.advance(1_000_000); // a paused socket is not idle
  const pending: readonly ModelEvent[] = (await iterator.next()).value;
  const bytes = pending.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0);
  t.ok(bytes > 100_000 && bytes < 300_000, `${bytes} bytes were pending`);
  while (request.sent === full) await iterator.next();

  abort.abort();
  t.equal(await request.ended, 'aborted');
});

t.test(
  'R-020 R-021 an abort closes the socket before the first byte, in the middle, and of an answer that is not streamed',
  async (t) => {
    const { server, clock, connector } = await open(t);
    const never = new Promise<void>(() => {});
    const reason = new Error('the caller has gone');
    for (const [script, request] of [
      [{ before: never }, {}],
      [{ text: ['a', never] }, {}],
      [{ text: [never] }, WHOLE],
    ] as const) {
      server.enqueue(script);
      const abort = new AbortController();
      const iterator = connector.stream(modelRequest('Hi', request), abort.signal)[Symbol.asyncIterator]();
      const number = server.requests.length + 1;
      let next = iterator.next();
      const received = await server.received(number);
      if ('text' in script && request !== WHOLE) {
        await next;
        next = iterator.next();
      }
      abort.abort(reason);
      await t.rejects(next, reason);
      t.equal(await received.ended, 'aborted');
      t.equal((await iterator.next()).done, true);
    }
    t.equal(server.openConnections, 0);
    t.equal(clock.pending, 0);
  },
);

t.test('an abort between two reads drops pending events and throws at the next read', async (t) => {
  const { server, connector } = await open(t);
  const gate = Promise.withResolvers<void>();
  server.respond({ text: ['a', gate.promise, 'b', new Promise(() => {})] });
  const abort = new AbortController();
  const iterator = connector.stream(modelRequest('Hi'), abort.signal)[Symbol.asyncIterator]();
  await iterator.next();
  gate.resolve();
  const request = await server.received(1);
  while (request.sent < 3) await rounds(1);
  await rounds();
  abort.abort();
  await t.rejects(iterator.next(), { name: 'AbortError' });
});

t.test('a request aborted beforehand is not sent', async (t) => {
  const { server, connector } = await open(t);
  const iterator = connector.stream(modelRequest('Hi'), AbortSignal.abort(new Error('gone')))[Symbol.asyncIterator]();
  await t.rejects(iterator.next(), { message: 'gone' });
  t.equal((await iterator.next()).done, true);
  t.equal(server.openConnections, 0);
});

t.test('a request aborted while connecting is not sent', async (t) => {
  const { server, connector } = await open(t);
  const abort = new AbortController();
  const iterator = connector.stream(modelRequest('Hi'), abort.signal)[Symbol.asyncIterator]();
  abort.abort(new Error('gone'));
  await t.rejects(iterator.next(), { message: 'gone' });
  await readAll({ connector });
  t.equal(server.requests.length, 1);
});

t.test('a reader that stops early closes the socket; one that has read all does not', async (t) => {
  const { server, clock, connector } = await open(t);
  server.enqueue({ text: ['a', new Promise(() => {})] });
  for await (const batch of connector.stream(modelRequest('Hi'), new AbortController().signal)) {
    t.strictSame(batch.map(plain), [text('a')]);
    break;
  }
  t.equal(await (await server.received(1)).ended, 'aborted');
  for await (const batch of connector.stream(modelRequest('Hi'), new AbortController().signal)) {
    if (batch.at(-1)?.type === 'end') break;
  }
  t.equal(await (await server.received(2)).ended, 'answered');
  await rounds();
  await readAll({ connector });
  t.equal(server.requests[2]?.connection, server.requests[1]?.connection);
  t.equal(clock.pending, 0);
});

t.test('R-030 an unreachable model server is retryable, and its address is not shown', async (t) => {
  const refused = connect(t, { baseUrl: await ModelServer.refusedUrl() });
  t.match(await readError(refused), {
    name: 'ModelError',
    message: /^the model server refused the connection: nothing listens there\.$/,
    retryable: true,
    cause: { code: 'ECONNREFUSED' },
  });
  const unknown = await readError(connect(t, { baseUrl: 'http://nowhere.invalid/v1' }));
  t.match(unknown, {
    message: /^the name of the model server could not be resolved \((ENOTFOUND|EAI_AGAIN)\)\.$/,
    retryable: true,
  });
});

t.test('a connect timeout or a TLS error is retryable', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  const slow = connect(t, { baseUrl: `https://127.0.0.1:${port}`, connectTimeout: '1ms' });
  t.match(await readError(slow), {
    message: 'connecting to the model server took longer than 1ms (connectTimeout).',
    retryable: true,
  });

  const { server } = await open(t);
  const plainHttp = connect(t, { baseUrl: server.url.replace('http:', 'https:') });
  t.match(await readError(plainHttp), {
    message: /^no secure connection to the model server was possible \(\w+\)\.$/,
    retryable: true,
  });
});

t.test('a model server that hangs up or sends invalid HTTP has not answered', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({ hangUp: true });
  t.match(await readError(connection), { message: 'the model server closed the connection without an answer.', retryable: true });

  const rude = createServer((socket) => socket.end('SSH-2.0-rude\r\n')).listen(0, '127.0.0.1');
  t.teardown(() => rude.close());
  await new Promise((resolve) => rude.once('listening', resolve));
  const { port } = rude.address() as { port: number };
  t.match(await readError(connect(t, { baseUrl: `127.0.0.1:${port}` })), {
    message: /^the model server sent invalid HTTP \(\w+\)\.$/,
    retryable: false,
  });
});

t.test('R-031 R-032 the status decides whether and when to retry', async (t) => {
  const { server, clock, ...connection } = await open(t);
  const outcomes: [number, boolean][] = [
    [400, false],
    [403, false],
    [404, false],
    [408, true],
    [409, true],
    [422, false],
    [429, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true],
  ];
  for (const [status, retryable] of outcomes) {
    server.enqueue({ status, body: { error: { message: 'Because.' } } });
    const { message, ...rest } = await readError({ ...connection });
    t.equal(message, `the model server answered ${status}: Because.`);
    t.match(rest, { name: 'ModelError', retryable, retryAfter: undefined, cause: undefined });
  }

  server.enqueue({ status: 429, retryAfter: 2 });
  t.match(await readError(connection), { message: /^the model server answered 429 and asks to wait 2 s: /, retryAfter: 2000 });
  server.enqueue({ status: 503, retryAfter: new Date(clock.now() + 5000).toUTCString(), body: '' });
  t.match(await readError(connection, WHOLE), {
    message: 'the model server answered 503 and asks to wait 5 s',
    retryAfter: 5000,
  });
  server.enqueue({ status: 500, headers: { 'retry-after-ms': '250', 'x-should-retry': 'false' } });
  t.match(await readError(connection), { retryable: false, retryAfter: 250 });
  server.enqueue({ status: 400, headers: { 'x-should-retry': 'true' } });
  t.match(await readError(connection), { retryable: true, retryAfter: undefined });
});

t.test('a redirect is not followed but explained', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({ status: 307, body: '', headers: { location: 'http://elsewhere/v1' } });
  t.match(await readError(connection), {
    message: 'the model server answered 307, a redirect: set baseUrl to its target.',
    retryable: false,
  });
});

t.test('an error keeps the server’s message, redacted and shortened', async (t) => {
  const { server, ...connection } = await open(t, { headers: { 'x-token': 'Token abcdefgh123', 'x-short': 'on' } });
  const { host } = new URL(server.url);
  server.enqueue(
    {
      status: 400,
      body: { error: { message: `Key sk-very-secret and abcdefgh123 of Token abcdefgh123\n on http://${host}/v1 fail.` } },
    },
    { status: 500, body: `<html>${'x'.repeat(99)}` },
    { status: 500, body: 'y'.repeat(600) },
    { status: 500, body: 'z'.repeat(100_000) },
    { raw: ['half an', ' error'], status: 500, contentType: 'text/plain', ending: 'cut' },
  );
  t.equal(
    (await readError(connection)).message,
    'the model server answered 400: Key [redacted] and [redacted] of [redacted] on [redacted]/v1 fail.',
  );
  t.equal((await readError(connection)).message, 'the model server answered 500.');
  t.equal((await readError(connection)).message, `the model server answered 500: ${'y'.repeat(499)}…`);
  t.equal((await readError(connection)).message, `the model server answered 500: ${'z'.repeat(499)}…`);
  t.equal((await readError(connection)).message, 'the model server answered 500: half an error');
});

t.test('the message of a 401 goes to the log only', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue(
    { status: 401, body: { error: { message: 'Incorrect API key provided: sk-ve****cret.' } } },
    { status: 401, body: '' },
  );
  const error = await readError(connection);
  t.match(error, { message: 'the model server did not accept the credentials (401): is apiKey right?', retryable: false });
  t.match(error.cause, { message: 'Incorrect API key provided: sk-ve****cret.' });
  t.equal((await readError(connection)).cause, undefined);
});

t.test('R-033 an answer fails after idleTimeout without a byte and is not retried', async (t) => {
  const { server, clock, connector } = await open(t, { idleTimeout: '30s' });
  const silent = { message: 'the model server sent nothing for 30s (idleTimeout).', retryable: false };
  const never = new Promise<void>(() => {});

  for (const request of [{}, WHOLE]) {
    server.enqueue({ before: never });
    const failed = readError({ connector }, request);
    const received = await server.received(server.requests.length + 1);
    clock.advance(29_999);
    t.equal(received.state, 'open');
    clock.advance(1);
    t.match(await failed, silent);
    t.equal(await received.ended, 'aborted');
  }

  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  server.enqueue({ raw: [gates[0].promise, ': waiting\n\n', gates[1].promise, ': still\n\n', never] });
  const failed = readError({ connector });
  const received = await server.received(3);
  for (const [index, gate] of gates.entries()) {
    clock.advance(29_999);
    gate.resolve();
    while (received.sent <= index) await rounds(1);
    await rounds(); // reading a comment has no effect to wait for
  }
  clock.advance(29_999);
  t.equal(received.state, 'open', 'a comment resets the timer');
  clock.advance(1);
  t.match(await failed, silent);
});

t.test('R-034 a stream without a finish reason was cut off', async (t) => {
  const { server, ...connection } = await open(t);
  const cutOff = 'the answer was cut off: the model server ended it without a finish reason.';
  server.enqueue({ text: 'so', finishReason: null });
  t.match(await readError(connection), { message: cutOff, retryable: true, text: 'so' });
  server.enqueue({ text: 'so', finishReason: null, done: false });
  t.match(await readError(connection), { message: cutOff, text: 'so' });
  server.enqueue({ raw: ['data: {"choices":[{"delta":{"content":"so"}}]}\n\ndata: {"choi'] });
  t.match(await readError(connection), { message: cutOff, text: 'so' });
  server.enqueue({ raw: [] });
  t.match(await readError(connection), { message: cutOff, text: '' });
});

t.test('R-034 an answer whose socket closes in the middle fails', async (t) => {
  const { server, ...connection } = await open(t);
  const brokenOff = { message: /^the model server broke off in the middle of its answer \(\w+\)\.$/, retryable: true };
  server.enqueue({ text: ['a', 'b'], cut: { afterEvents: 3 } });
  t.match(await readError(connection), { ...brokenOff, text: 'ab' });
  server.enqueue({ text: 'ab', cut: { afterBytes: 20 } });
  t.match(await readError(connection, WHOLE), { ...brokenOff, text: '' });
});

t.test('an answer with a finish reason is complete, whatever happens to the rest', async (t) => {
  const { server, clock, ...connection } = await open(t);
  const answer = [text('so'), STOP];
  server.enqueue({ text: 'so', done: false, usage: null });
  t.strictSame(await readAll(connection), answer, 'without [DONE]');
  server.enqueue({ text: 'so', cut: { afterEvents: 3 } });
  t.strictSame(await readAll(connection), answer, 'without its usage');
  const finish = 'data: {"choices":[{"delta":{"content":"so"},"finish_reason":"stop"}]}\n\n';
  server.enqueue({ raw: [`${finish}data: {"choi`] });
  t.strictSame(await readAll(connection), answer, 'with half of an event behind it');
  server.enqueue({ raw: [finish, new Promise(() => {})] });
  const iterator = connection.connector.stream(modelRequest('Hi'), new AbortController().signal)[Symbol.asyncIterator]();
  t.strictSame((await iterator.next()).value?.map(plain), [text('so')]);
  clock.advance(120_000);
  t.strictSame((await iterator.next()).value, [STOP], 'without an end');
  t.equal(await server.requests[3]?.ended, 'aborted');
});

t.test('an error object in place of an answer is an error', async (t) => {
  const { server, ...connection } = await open(t);
  const stream = (error: unknown) => ({
    raw: [`data: {"choices":[{"delta":{"content":"so"}}]}\n\ndata: ${JSON.stringify({ error })}\n\n`],
  });
  server.enqueue(
    stream({ message: 'Overloaded sk-very-secret.', type: 'server_error', code: null }),
    stream({ message: 'Bad.', type: 'invalid_request_error' }),
    stream({ message: 'Try later.', code: 429 }),
    stream({ code: 400 }),
    stream('Just text.'),
  );
  t.match(await readError(connection), {
    message: 'the model server reported an error: Overloaded [redacted].',
    retryable: true,
    text: 'so',
  });
  t.match(await readError(connection), { message: 'the model server reported an error: Bad.', retryable: false });
  t.match(await readError(connection), { message: 'the model server reported an error: Try later.', retryable: true });
  t.match(await readError(connection), { message: 'the model server reported an error.', retryable: false });
  t.match(await readError(connection), { message: 'the model server reported an error: Just text.', retryable: false });
  server.enqueue({ raw: ['{"error":{"message":"No."}}'], contentType: 'application/json' }, { finishReason: 'error' });
  t.match(await readError(connection, WHOLE), { message: 'the model server reported an error: No.', retryable: false });
  t.match(await readError(connection), { message: 'the model server reported an error.' });
});

t.test('R-035 a response outside the protocol is reported as such', async (t) => {
  const { server, ...connection } = await open(t);
  const unreadable = async (what: string, request: Partial<ModelRequest> = {}) => {
    const { message, retryable } = await readError(connection, request);
    t.equal(message, `the model server sent ${what}; does baseUrl lead to a chat-completions server?`);
    t.equal(retryable, false);
  };
  server.enqueue({ raw: ['<html>'], contentType: 'text/html; charset=utf-8' });
  await unreadable('an answer of the type text/html');
  server.enqueue({ raw: ['data: {"a":\n\n'] });
  await unreadable('an event that is not JSON');
  server.enqueue({ raw: [Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 10, 10])] });
  await unreadable('an event that is not JSON');
  server.enqueue({ raw: ['data: []\n\n'] });
  await unreadable('JSON that is not an object');
  const json = 'application/json';
  server.enqueue({ raw: ['{"choices":'], contentType: json }, { raw: [], contentType: json }, { raw: ['{}'], contentType: json });
  await unreadable('an answer that is not JSON', WHOLE);
  await unreadable('an answer that is not JSON', WHOLE);
  await unreadable('an answer without choices', WHOLE);
  server.enqueue({ raw: ['{"choices":[{"message":{"tool_calls":[{}]}}]}'], contentType: json });
  await unreadable('a tool call without a name', WHOLE);
  const deep = `{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","arguments":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}}]}}]}`;
  server.enqueue({ raw: [deep], contentType: json });
  await unreadable('an answer that could not be read', WHOLE);
});

t.test('R-036 an event or a body of more than 16 MiB is refused', async (t) => {
  const { server, ...connection } = await open(t);
  const mebibyte = 'x'.repeat(2 ** 20);
  function* endless() {
    yield 'data: {"choices":[{"delta":{"content":"';
    for (;;) yield mebibyte;
  }
  server.enqueue({ raw: endless() }, { raw: endless(), contentType: 'application/json' });
  t.match(await readError(connection), { message: 'the model server sent an event of more than 16 MiB.', retryable: false });
  t.match(await readError(connection, WHOLE), {
    message: 'the model server sent an answer of more than 16 MiB.',
    retryable: false,
  });
  for (const request of server.requests) t.equal(await request.ended, 'aborted');
});

t.test('an invalid request is reported as such', async (t) => {
  const { connector } = await open(t);
  t.match(await readError({ connector }, { headers: { 'bad name': 'x' } }), {
    message: 'the request to the model server is invalid; the server log has the details.',
    retryable: false,
    cause: { code: 'UND_ERR_INVALID_ARG' },
  });
});

t.test('stopping ends open requests', async (t) => {
  const { server, connector, context } = await open(t);
  const never = new Promise<void>(() => {});
  server.enqueue({ before: never }, { text: ['a', never] });
  const failed = readError({ connector });
  await server.received(1);
  const iterator = connector.stream(modelRequest('Hi'), new AbortController().signal)[Symbol.asyncIterator]();
  await iterator.next();
  await context.lifecycle.stop?.(new AbortController().signal);
  const stopped = { message: 'the connection was stopped before the model server had answered.', retryable: false };
  t.match(await failed, stopped);
  await t.rejects(iterator.next(), stopped);
  for (const request of server.requests) t.equal(await request.ended, 'aborted');
  t.match(await readError({ connector }), stopped, 'later requests fail as well');
});

t.test('takes the protocol’s sampling parameters and no others', async (t) => {
  const { connector } = await open(t);
  for (const name of ['temperature', 'max_tokens', 'response_format', 'tool_choice', 'parallel_tool_calls', 'seed'])
    t.ok(connector.supportsParam(name));
  for (const name of ['model', 'messages', 'tools', 'stream', 'n', 'user', 'store', 'top_k', 'toString'])
    t.notOk(connector.supportsParam(name));
});
