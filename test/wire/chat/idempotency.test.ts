import { eventually } from '@plugboard/testing';
import t from 'tap';
import { answerOf, errorOf, type Reply, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

const yaml = `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
sessions: { use: sqlite, path: sessions.db }
`;
const folder = t.testdir();
const server = await TestServer.start(t, yaml, { folder });
const once = (key: string) => ({ 'Idempotency-Key': key });

for (const [kind, fields] of [
  ['a stateless request', {}],
  ['a request of a session', { session_id: 's' }],
] as const) {
  t.test(`${kind} that is sent twenty times at once with one key runs once`, async (t) => {
    const asked = server.models.requests.length;
    const open = Promise.withResolvers<void>();
    server.models.enqueue({ before: open.promise, text: 'Only once' });
    const replies: Reply[] = [];
    const all = Array.from({ length: 20 }, async () => replies.push(await server.chat(saying('Hi', fields), once(kind))));
    await eventually(() => replies.length === 19);
    for (const reply of replies) {
      t.equal(reply.status, 409);
      t.equal(errorOf(reply).code, 'idempotency_in_progress');
      t.equal(reply.headers.get('retry-after'), '2');
    }
    open.resolve();
    await Promise.all(all);
    const first = replies[19] as Reply;
    t.equal(answerOf(first), 'Only once');
    t.notOk(first.headers.has('idempotent-replayed'));

    const again = await server.chat(saying('Hi', fields), once(kind));
    t.strictSame([again.status, again.text], [200, first.text]);
    t.equal(again.headers.get('idempotent-replayed'), 'true');
    t.equal(server.models.requests.length, asked + 1, 'the model was asked once');

    const other = await server.chat(saying('Hello', fields), once(kind));
    t.strictSame([other.status, errorOf(other).code], [422, 'idempotency_mismatch']);
  });
}

t.test('a request that is refused before its run does not use up its key', async (t) => {
  t.equal((await server.chat({ model: 'assistant', messages: [] }, once('early'))).status, 400);
  t.equal(answerOf(await server.chat(saying('Now it is right'), once('early'))), 'Now it is right');
  t.equal(errorOf(await server.chat(saying('Hi'), once('x'.repeat(256)))).param, 'Idempotency-Key');
});

t.test('a failure frees the key before tools have started, and is the stored answer afterwards', async (t) => {
  const refusing = { status: 400, body: { error: { message: 'no' } } };
  server.models.enqueue(refusing);
  t.equal((await server.chat(saying('Hi'), once('free'))).status, 502);
  t.equal(answerOf(await server.chat(saying('Hi'), once('free'))), 'Hi');

  server.models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, refusing);
  const failed = await server.chat(saying('What time is it?'), once('taken'));
  const asked = server.models.requests.length;
  const again = await server.chat(saying('What time is it?'), once('taken'));
  t.strictSame([failed.status, again.status, again.text], [502, 502, failed.text]);
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.equal(again.headers.get('x-should-retry'), 'false');
  t.equal(server.models.requests.length, asked);
});

t.test('stored answers survive a restart, plain and streamed', async (t) => {
  const fields = { stream_options: { include_usage: true }, session_id: 'streamed' };
  const streamed = await server.stream(saying('A stream', fields), once('stream'));
  const plain = await server.chat(saying('Plain'), once('plain'));
  await server.stop();
  const next = await TestServer.start(t, yaml, { folder });
  const again = await next.stream(saying('A stream', fields), once('stream'));
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.strictSame([again.text, again.done, again.chunks.at(-1)], ['A stream', true, streamed.chunks.at(-1)]);
  t.strictSame(again.chunks[0], streamed.chunks[0]);
  t.equal((await next.chat(saying('Plain'), once('plain'))).text, plain.text);
  t.equal(next.models.requests.length, 0);
});
