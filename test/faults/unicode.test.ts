import t from 'tap';
import { answerOf, errorOf, saying, TestServer } from '../support/test-server.js';

t.test('an unpaired surrogate does not reach a model server, so the session can continue', async (t) => {
  const server = await TestServer.start(t);
  server.models.respond(({ body }) =>
    JSON.stringify(body.messages).includes('\\ud83d here') ? { status: 400 } : { text: 'Yes' },
  );
  const reply = await server.chat(saying('cut \ud83d here', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  const literal = 'a literal \\ud83d, \\\\ud83d and \u{1f600}';
  t.equal(answerOf(await server.chat(saying(literal, { session_id: 's' }))), 'Yes');
  t.match(server.asked.messages, [{ role: 'system' }, { content: 'cut \ufffd here' }, {}, { content: literal }]);
});

t.test('an error message contains no unpaired surrogate', async (t) => {
  const server = await TestServer.start(t);
  for (const length of [10, 60]) {
    for (const role of [`${'x'.repeat(length)}\u{1f600}${'y'.repeat(30)}`, `${'x'.repeat(length)}\ud83d`]) {
      const reply = await server.chat({ model: 'assistant', messages: [{ role, content: 'Hi' }] });
      t.equal(reply.status, 400);
      t.ok(String(errorOf(reply).message).isWellFormed(), String(errorOf(reply).message));
    }
  }
});
