import { eventually, modelRequest } from '@plugboard/testing';
import t from 'tap';
import { AnswerBody } from '../../src/answer/answer-body.js';
import { open, plain, readAll, readError, runEventLoop, STOP, textEvent, WHOLE } from '../connection.js';

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
  t.strictSame(await readAll(connection), [textEvent('so'), STOP]);
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
  const answer = [textEvent('so'), STOP];
  server.enqueue({ text: 'so', done: false, usage: null });
  t.strictSame(await readAll(connection), answer, 'without [DONE]');
  server.enqueue({ text: 'so', cut: { afterEvents: 3 } });
  t.strictSame(await readAll(connection), answer, 'without its usage');
  const finish = 'data: {"choices":[{"delta":{"content":"so"},"finish_reason":"stop"}]}\n\n';
  server.enqueue({ raw: [`${finish}data: {"choi`] });
  t.strictSame(await readAll(connection), answer, 'with half of an event behind it');
  server.enqueue({ raw: [finish, new Promise(() => {})] });
  const iterator = connection.connector.stream(modelRequest('Hi'), new AbortController().signal)[Symbol.asyncIterator]();
  t.strictSame((await iterator.next()).value?.map(plain), [textEvent('so')]);
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

t.test('S-76 a page of HTML whose title has no end takes time in proportion to its length', async (t) => {
  const took = (titles: number) => {
    const failures = { unreadable: (what: string, { text }: { text: string }) => new Error(`${what}: ${text}`) };
    const body = new AnswerBody(undefined as never, failures as never);
    const page = Buffer.from('<title'.repeat(titles));
    const began = performance.now();
    t.throws(() => body.read(page, []), { message: 'a page of HTML: ' });
    return performance.now() - began;
  };
  const least = (titles: number) => Math.min(...Array.from({ length: 5 }, () => took(titles)));
  const [one, four] = [least(5_000), least(20_000)];
  t.ok(four < one * 10 + 5, `${one} ms, ${four} ms for four times as much`);
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
