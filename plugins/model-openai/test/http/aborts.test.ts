import { eventually, modelRequest } from '@plugboard/testing';
import t from 'tap';
import { open, plain, readAll, readError, runEventLoop, textEvent, WHOLE } from '../connection.js';

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
    t.strictSame(batch.map(plain), [textEvent('a')]);
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
