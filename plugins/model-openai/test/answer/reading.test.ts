import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ModelEvent } from '@plugboard/kernel';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import { open, pausing, plain, read, readAll, readError, runEventLoop, STOP, textEvent, WHOLE } from '../connection.js';

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
    usage: { promptTokens: 7, completionTokens: 9, cachedTokens: 3, cacheWriteTokens: 0, reasoningTokens: 2 },
  });
  const end: ModelEvent[] = [
    { type: 'tool-call', id: 'one', name: 'clock', arguments: '{"zone":"UTC"}' },
    { type: 'tool-call', id: 'two', name: 'dice', arguments: '{}' },
    { type: 'usage', usage: { promptTokens: 7, completionTokens: 9, cachedTokens: 3, cacheWriteTokens: 0, reasoningTokens: 2 } },
    { type: 'end', reason: 'tool_calls' },
  ];
  const thought: ModelEvent[] = [
    { type: 'reasoning', text: 'I ' },
    { type: 'reasoning', text: 'think' },
  ];
  t.strictSame(await readAll(connection), [
    ...thought,
    textEvent('so'),
    textEvent(' I "am"\n'),
    textEvent(' é😀'),
    { ...textEvent(' No.'), isRefusal: true },
    ...end,
  ]);
  t.strictSame(await readAll(connection, WHOLE), [
    { type: 'reasoning', text: 'I think' },
    textEvent('so I "am"\n é😀'),
    { ...textEvent(' No.'), isRefusal: true },
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
  t.strictSame(batches, [[...'abc'].map(textEvent), [...[...'defgh'].map(textEvent), STOP]]);
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
        t.strictSame(await readAll(connection, request), [textEvent('a'), STOP], `${contentType}: ${raw}`);
      }
    }
    server.enqueue({ raw: [lines], contentType });
    t.strictSame(await readAll(connection), [textEvent('b'), textEvent('c'), STOP], 'one object on each line');
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
    t.strictSame(await readAll(connection), [textEvent('a'), textEvent('b'), STOP], name);
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
    t.strictSame(await readAll(connection), [textEvent('a'.repeat(1000)), textEvent('b'), STOP], encoding);
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
  t.strictSame((await iterator.next()).value?.map(plain), [textEvent('a')], 'events are read as they arrive');
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
  t.strictSame(await readAll(connection), [textEvent('a'), textEvent(big), textEvent(big), STOP]);

  const event = Buffer.from('data:{"choices":[{"delta":{"content":"é😀"},"finish_reason":"stop"}]}\r\n\r\n');
  server.enqueue({ raw: pausing(...[...event].map((byte) => Buffer.from([byte]))) });
  t.strictSame(await readAll(connection), [textEvent('é😀'), STOP]);
});

t.test('ignores what follows the end of the answer', async (t) => {
  const { server, ...connection } = await open(t);
  const finish = '{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}';
  server.enqueue({ raw: [`data: ${finish}\n\ndata: [DONE]\n\ndata: garbage\n\n`, 'more'] });
  t.strictSame(await readAll(connection), [textEvent('a'), STOP]);
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
