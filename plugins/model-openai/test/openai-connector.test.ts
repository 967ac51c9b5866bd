import { createServer } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ModelEvent, ModelRequest } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { eventually, ModelServer, modelConnectorContract, modelRequest, pluginContract } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { connect, open, plain, read, readAll, readError, runEventLoop } from './connection.js';

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
    yield runEventLoop();
  }
}

t.test('fulfils the plugin contract', async (t) => {
  const options = { packageDir: new URL('..', import.meta.url), config: { model: 'gpt-test' }, entry: 'models.fast' };
  pluginContract(t.test, plugin, options);
});

t.test('fulfils the model connector contract', async (t) => {
  const { server, connector } = await open(t);
  server.respond(({ body }) => {
    if (body.tools) return { toolCalls: ['UTC', 'CET'].map((zone) => ({ name: 'clock', arguments: { zone } })) };
    return { text: body.stream ? pausing('One', ' "two"\n', 'trois é') : 'One "two"\ntrois é' };
  });
  const samples = { text: modelRequest('Count'), toolCall: modelRequest('Time?', { tools: [CLOCK] }) };
  modelConnectorContract(t.test, { open: () => connector, ...samples });
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

t.test('the first byte decides how an answer is read, not the content type', async (t) => {
  const { server, ...connection } = await open(t);
  const whole = JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }] });
  const event = 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n';
  const lines = ['b', 'c']
    .map((content) => JSON.stringify({ choices: [{ delta: { content }, finish_reason: 'stop' }] }))
    .join('\n');
  for (const contentType of ['application/json', 'text/event-stream', 'text/plain', 'application/octet-stream', null]) {
    for (const raw of [
      whole,
      `\ufeff\n${whole}`,
      `${JSON.stringify(JSON.parse(whole), null, 2)}\n\ndata: [DONE]\n\n`,
      event,
      `\ufeff${event}`,
    ]) {
      for (const request of [{}, WHOLE]) {
        server.enqueue({ raw: [raw], contentType });
        t.strictSame(await readAll(connection, request), [text('a'), STOP], `${contentType}: ${raw}`);
      }
    }
    server.enqueue({ raw: [lines], contentType });
    t.strictSame(await readAll(connection), [text('b'), text('c'), STOP], 'one object on each line');
  }
});

t.test('reads event streams with small defects', async (t) => {
  const { server, ...connection } = await open(t);
  const chunk = (content: string) => `{"choices":[{"delta":{"content":"${content}"}}]}`;
  const finish = '{"choices":[{"delta":{},"finish_reason":"stop"}]}';
  const bodies = {
    'two blanks after the colon': `data:  ${chunk('a')}\n\ndata:  ${chunk('b')}\n\ndata:  ${finish}\n\ndata:  [DONE]\n\n`,
    'blanks around [DONE]': `data: ${chunk('a')}\n\ndata: ${chunk('b')}\n\ndata: \t[DONE] \n\n`,
    'comments inside data': `data: : PROCESSING\n\ndata: ${chunk('a')}\n\ndata: ping\n\ndata: ${chunk('b')}\n\ndata: [DONE]\n\n`,
    'CR LF and a byte order mark': `\ufeffdata: ${chunk('a')}\r\n\r\ndata: ${chunk('b')}\r\n\r\ndata: [DONE]\r\n\r\n`,
    'no blank lines': `data: ${chunk('a')}\ndata: ${chunk('b')}\ndata: ${finish}\ndata: [DONE]\n`,
    'two objects in one event': `data: ${chunk('a')}${chunk('b')}\n\ndata: [DONE]\n\n`,
    'a repeated prefix': `data: data: ${chunk('a')}\n\ndata: data: ${chunk('b')}\n\ndata: data: [DONE]\n\n`,
    'a list in an event': `data: [${chunk('a')},${chunk('b')}]\n\ndata: [DONE]\n\n`,
    'bare JSON between events': `data: ${chunk('a')}\n\n${chunk('b')}\n\ndata: [DONE]\n\n`,
    'an indented field': `data: ${chunk('a')}\n\n  data: ${chunk('b')}\n\ndata: [DONE]\n\n`,
    'a null event': `data: ${chunk('a')}\n\ndata: null\n\ndata: ${chunk('b')}\n\ndata: [DONE]\n\n`,
  };
  for (const [name, raw] of Object.entries(bodies)) {
    server.enqueue({ raw: [raw] });
    t.strictSame(await readAll(connection), [text('a'), text('b'), STOP], name);
  }
});

t.test('asks for an uncompressed answer, and reads a compressed one', async (t) => {
  const { server, ...connection } = await open(t);
  const event = (content: string) => `data: {"choices":[{"delta":{"content":"${content}"}}]}\n\n`;
  const finish = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const body = event('a'.repeat(1000)) + event('b') + finish;
  const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const [encoding, encode] of Object.entries(encoders)) {
    const bytes = encode(body);
    server.enqueue({ raw: pausing(bytes.subarray(0, 20), bytes.subarray(20)), headers: { 'content-encoding': encoding } });
    t.strictSame(await readAll(connection), [text('a'.repeat(1000)), text('b'), STOP], encoding);
    server.enqueue({
      raw: [encode('{"error":{"message":"No."}}')],
      status: 400,
      contentType: 'application/json',
      headers: { 'content-encoding': encoding },
    });
    t.match(await readError(connection), { message: 'the model server answered 400: No.' });
  }
  t.equal(server.requests[0]?.headers['accept-encoding'], 'identity');
  server.enqueue({ raw: [body], headers: { 'content-encoding': 'identity' } });
  t.equal((await readAll(connection)).length, 3);
  server.enqueue({ raw: [body], headers: { 'content-encoding': 'gzip' } });
  t.match(await readError(connection), { message: /^the model server sent compressed data that cannot be read\./ });
  server.enqueue({ raw: [body], headers: { 'content-encoding': 'compress' } });
  t.match(await readError(connection), { message: /^the model server sent an answer in an unknown encoding: compress\./ });
  server.enqueue({
    raw: pausing<Buffer | Promise<unknown>>(gzipSync(event('a')).subarray(0, -8), new Promise(() => {})),
    headers: { 'content-encoding': 'gzip' },
  });
  const iterator = connection.connector.stream(modelRequest('Hi'), new AbortController().signal)[Symbol.asyncIterator]();
  t.strictSame((await iterator.next()).value?.map(plain), [text('a')], 'events are read as they arrive');
  await iterator.return?.();
  t.equal(await server.requests.at(-1)?.ended, 'aborted');
});

t.test('R-010 a reader that stops reading pauses a compressed answer too', async (t) => {
  const { server, connector } = await open(t);
  const event = `data: {"choices":[{"delta":{"content":"${'x'.repeat(1000)}"}}]}\n\n`;
  const finish = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
  server.enqueue({ raw: [gzipSync(event.repeat(2000) + finish)], headers: { 'content-encoding': 'gzip' } });
  const iterator = connector.stream(modelRequest('Hi'), new AbortController().signal)[Symbol.asyncIterator]();
  let length = 0;
  let largest = 0;
  for (;;) {
    const { value, done } = await iterator.next();
    if (done) break;
    const size = value.reduce((sum: number, one: ModelEvent) => sum + (one.type === 'text' ? one.text.length : 0), 0);
    largest = Math.max(largest, size);
    length += size;
    await runEventLoop(2);
  }
  t.equal(length, 2_000_000);
  t.ok(largest < 400_000, `${largest} bytes in one batch`);
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
  await runEventLoop();
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
      yield runEventLoop(1);
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
      await runEventLoop(1);
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
    const reason = new Error('the caller disconnected');
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
  await eventually(() => request.sent >= 3);
  await runEventLoop();
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

t.test('a reader that stops early closes the socket; one that has read everything does not', async (t) => {
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
  await runEventLoop();
  await readAll({ connector });
  t.equal(server.requests[2]?.connection, server.requests[1]?.connection);
  t.equal(clock.pending, 0);
});

t.test('R-030 an unreachable model server is retryable, and its address is not shown', async (t) => {
  const refused = connect(t, { baseUrl: await ModelServer.refusedUrl() });
  t.match(await readError(refused), {
    name: 'ModelError',
    message: /^the model server refused the connection; check that it is running and that baseUrl is correct\.$/,
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
    message: /^the TLS connection to the model server failed \(\w+\)\.$/,
    retryable: true,
  });
});

t.test('a closed connection or invalid HTTP counts as no answer', async (t) => {
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
    [498, true],
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

t.test('what a server says about the key goes to the log only', async (t) => {
  const { server, ...connection } = await open(t);
  const refusals: [number, object | string, string][] = [
    [401, { error: { message: 'Incorrect API key provided: sk-ve****cret.' } }, 'Incorrect API key provided: [redacted].'],
    [403, { error: { message: 'No.', code: 'invalid_api_key' } }, 'No.'],
    [400, { error: { message: 'The API key sk-very-s is malformed.' } }, 'The API key [redacted] is malformed.'],
    [400, [{ error: { code: 400, message: 'Bad.', details: [{ reason: 'API_KEY_INVALID' }] } }], 'Bad.'],
  ];
  for (const [status, body, cause] of refusals) {
    server.enqueue({ status, body });
    const error = await readError(connection);
    t.match(error, {
      message: `the model server did not accept the credentials (${status}); check apiKey.`,
      retryable: false,
    });
    t.match(error.cause, { message: cause });
  }
  server.enqueue({ status: 401, body: '' });
  t.equal((await readError(connection)).cause, undefined);
  server.enqueue({ raw: ['data: {"error":{"message":"Unauthorized.","code":401}}\n\n'] });
  t.match(await readError(connection), { message: 'the model server did not accept the credentials (401); check apiKey.' });
  server.enqueue({ status: 400, body: { error: { message: 'Failed: sk-very-secr' } } });
  t.equal(
    (await readError(connection)).message,
    'the model server answered 400: Failed: [redacted]',
    'a part of the key is redacted anywhere',
  );
});

t.test('R-031 a 429 says how long to wait in its body too, and a used-up quota is not retried', async (t) => {
  const { server, ...connection } = await open(t);
  const gemini = (...details: readonly object[]) => [
    { error: { code: 429, message: 'You exceeded your current quota.', status: 'RESOURCE_EXHAUSTED', details } },
  ];
  const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '4.5s' };
  const failure = { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'RequestsPerDayPerModel' }] };
  const outcomes: [object, boolean, number | undefined][] = [
    [gemini(info), true, 4500],
    [gemini(failure, info), false, undefined],
    [{ error: { message: 'Please try again in 1m2.5s.', code: 'rate_limit_exceeded' } }, true, 62_500],
    [{ error: { message: 'Retry after 20 seconds' } }, true, 20_000],
    [{ error: { message: 'Try again in 250ms' } }, true, 250],
    [{ error: { message: 'Slow down', retry_after: 3 } }, true, 3000],
    [{ error: { message: 'Quota', type: 'insufficient_quota', code: 'insufficient_quota' } }, false, undefined],
    [{ error: { message: 'Try again in a moment' } }, true, undefined],
  ];
  for (const [body, retryable, retryAfter] of outcomes) {
    server.enqueue({ status: 429, body });
    t.match(await readError(connection), { retryable, retryAfter }, JSON.stringify(body));
  }
  server.enqueue({ raw: [JSON.stringify(gemini(info))], contentType: 'application/json' });
  t.match(await readError(connection), { retryable: true, retryAfter: 4500 }, 'with status 200');
});

t.test('shows the sentence of the provider behind a gateway', async (t) => {
  const { server, ...connection } = await open(t);
  const raw = JSON.stringify({ error: { message: 'Kimi is busy.', type: 'engine_overloaded_error' } });
  const error = { message: 'Provider returned error', code: 429, metadata: { raw, provider_name: 'Moonshot AI' } };
  server.enqueue({ status: 429, body: { error } }, { raw: [`data: ${JSON.stringify({ error })}\n\n`] });
  t.match(await readError(connection), { message: 'the model server answered 429: Moonshot AI: Kimi is busy.', retryable: true });
  t.match(await readError(connection), {
    message: 'the model server reported an error: Moonshot AI: Kimi is busy.',
    retryable: true,
  });
  server.enqueue({ status: 502, body: { error: { message: 'Bad.', metadata: { raw: 'plain words' } } } });
  t.match(await readError(connection), { message: 'the model server answered 502: plain words' });
});

t.test('recognizes a conversation that is too long for the model', async (t) => {
  const { server, ...connection } = await open(t);
  const said = "This model's maximum context length is 8192 tokens.";
  server.enqueue(
    { status: 400, body: { error: { message: said, code: 'context_length_exceeded' } } },
    { status: 500, body: { error: { code: 500, message: 'the request exceeds the available context size' } } },
    { raw: ['error: {"code":400,"message":"the request exceeds the available context size"}\n\ndata: [DONE]\n\n'] },
    { status: 429, body: { error: { message: 'Too many tokens per minute', code: 'rate_limit_exceeded' } } },
  );
  const start = 'the conversation is too long for the model; the model server';
  t.match(await readError(connection), { message: `${start} answered 400: ${said}`, retryable: false });
  t.match(await readError(connection), { message: new RegExp(`^${start} answered 500: `), retryable: false });
  t.match(await readError(connection), { message: new RegExp(`^${start} reported an error: `), retryable: false });
  t.match(await readError(connection), { message: /^the model server answered 429: /, retryable: true });
});

t.test('an error in the middle of a stream is read in every form', async (t) => {
  const { server, ...connection } = await open(t);
  const forms = [
    'error: {"code":503,"message":"No."}\n\ndata: [DONE]\n\n',
    'error: {"error":{"code":503,"message":"No."}}\n\n',
    'event: error\ndata: {"code":503,"message":"No."}\n\n',
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"No."}}\n\n',
    '{"error":{"message":"No.","type":"server_error"}}\n\n',
    '{\n  "error": {\n    "message": "No.",\n    "code": "503"\n  }\n}\n',
    'data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":503,"message":"No."}}]}\n\n',
    'data: {"choi\ndata: {"error":{"code":503,"message":"No."}}\n\n',
    'data: {"object":"error","message":"No.","code":503}\n\n',
    'data: {"base_resp":{"status_code":1002,"status_msg":"No."}}\n\n',
  ];
  for (const form of forms) {
    server.enqueue({ raw: [`data: {"choices":[{"delta":{"content":"so"}}]}\n\n${form}`] });
    const error = await readError(connection);
    t.match(error, { message: 'the model server reported an error: No.', retryable: true, text: 'so' }, form);
  }
  server.enqueue({ raw: ['event: error\ndata: out of memory\n\n'] });
  t.match(await readError(connection), { message: 'the model server reported an error: out of memory', retryable: false });
  server.enqueue({ raw: ['event: message\ndata: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'] });
  t.strictSame(await readAll(connection), [text('a'), STOP], 'another event name means nothing');
});

t.test('codes decide whether an error is worth a retry', async (t) => {
  const { server, ...connection } = await open(t);
  const codes: [object, boolean][] = [
    [{ type: 'overloaded_error' }, true],
    [{ type: 'engine_overloaded_error' }, true],
    [{ code: 'rate_limit_exceeded' }, true],
    [{ status: 'UNAVAILABLE' }, true],
    [{ code: '529' }, true],
    [{ http_code: '500', type: 'internal' }, true],
    [{ status_code: 1001 }, true],
    [{ status_code: 1008 }, false],
    [{ code: 3280 }, false],
    [{ code: 429, type: 'insufficient_quota' }, false],
    [{ type: 'invalid_request_error', code: 'bad' }, false],
    [{ type: 'not_found_error' }, false],
    [{ message: 'The server is overloaded, please try again later.' }, true],
    [{ message: 'That is wrong.' }, false],
  ];
  for (const [error, retryable] of codes) {
    server.enqueue({ raw: [`data: ${JSON.stringify({ error })}\n\n`] });
    t.match(await readError(connection), { retryable }, JSON.stringify(error));
  }
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
    await eventually(() => received.sent > index);
    await runEventLoop(); // reading a comment has no effect to wait for
  }
  clock.advance(29_999);
  t.equal(received.state, 'open', 'a comment resets the timer');
  clock.advance(1);
  t.match(await failed, silent);
});

t.test('R-034 a stream without a finish reason was cut off, unless [DONE] follows text', async (t) => {
  const { server, ...connection } = await open(t);
  const cutOff = 'the answer was cut off: the model server ended it without a finish reason.';
  server.enqueue({ text: 'so', finishReason: null, usage: null });
  t.strictSame(await readAll(connection), [text('so'), STOP]);
  server.enqueue({ text: 'so', finishReason: null, done: false });
  t.match(await readError(connection), { message: cutOff, retryable: true, text: 'so' });
  server.enqueue({ reasoning: 'so', finishReason: null });
  t.match(await readError(connection), { message: cutOff, retryable: true });
  server.enqueue({ raw: ['data: {"choices":[{"delta":{"content":"so"}}]}\n\ndata: {"choi'] });
  t.match(await readError(connection), { message: cutOff, text: 'so' });
  server.enqueue({ raw: ['data: {"choices":[{"delta":{"content":"so"}}]}\n\nupstream connect error\n'] });
  t.match(await readError(connection), { message: `${cutOff} Last data received: upstream connect error`, text: 'so' });
});

t.test('R-034 an answer whose socket closes in the middle fails', async (t) => {
  const { server, ...connection } = await open(t);
  const brokenOff = {
    message: /^the model server closed the connection in the middle of its answer \(\w+\)\.$/,
    retryable: true,
  };
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
  t.match(await readError(connection), {
    message: 'the model server ended the answer with finish_reason "error".',
    retryable: true,
  });
});

t.test('R-035 a response outside the protocol is reported, with what came instead', async (t) => {
  const { server, ...connection } = await open(t);
  const json = 'application/json';
  const unreadable = async (raw: string | Buffer, what: string, contentType?: string) => {
    server.enqueue({ raw: [raw], ...(contentType === undefined ? {} : { contentType }) });
    const { message, retryable } = await readError(connection, contentType === json ? WHOLE : {});
    t.equal(message, `the model server sent ${what}. Check that baseUrl points to a chat-completions server.`);
    t.equal(retryable, false);
  };
  await unreadable('<html><head><title>\n nginx </title>', 'a page of HTML: nginx', 'text/html; charset=utf-8');
  await unreadable('<!doctype html>', 'a page of HTML', json);
  await unreadable('upstream connect error', 'text instead of an answer: upstream connect error', 'text/plain');
  await unreadable('Key sk-very-secret', 'text instead of an answer: Key [redacted]');
  await unreadable(`data: ${'x'.repeat(200)}\n\n`, `an event that is not JSON: ${'x'.repeat(159)}…`);
  await unreadable(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 10, 10]), 'an event that is not JSON: \ufffd\ufffd');
  await unreadable('data: 7\n\n', 'JSON that is not an object: 7');
  await unreadable('{"choices":', 'an answer that is not JSON: {"choices":', json);
  await unreadable('{}', 'an answer without choices: {}', json);
  await unreadable(
    'data: {"type":"message_start"}\n\ndata: {"type":"message_stop"}\n\n',
    'an answer without choices: {"type":"message_stop"}',
  );
  server.enqueue({ raw: ['{"choices":[{"message":{"tool_calls":[{}]}}]}'], contentType: json });
  t.match(await readError(connection, WHOLE), {
    message: 'the model server sent a tool call without a name: {}.',
    retryable: false,
  });
  const deep = `{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","arguments":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}}]}}]}`;
  server.enqueue({ raw: [deep], contentType: json });
  t.match(await readError(connection, WHOLE), {
    message: /^the model server sent an answer that could not be read\./,
    retryable: false,
  });
  for (const raw of [[], ['\n'], ['\ufeff \n']]) {
    server.enqueue({ raw });
    t.match(await readError(connection), { message: 'the model server sent an empty answer.', retryable: true });
  }
});

t.test('R-036 an event or a body of more than 16 MiB is refused', async (t) => {
  const { server, ...connection } = await open(t);
  const mebibyte = 'x'.repeat(2 ** 20);
  function* endless(start: string) {
    yield start;
    for (;;) yield mebibyte;
  }
  server.enqueue(
    { raw: endless('data: {"choices":[{"delta":{"content":"') },
    { raw: endless('{"choices":[{"message":{"content":"') },
  );
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
  const stopped = { message: 'the connection was stopped before the model server answered.', retryable: false };
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
