import t from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const config = ({ agent = '', model = '', rest = '' } = {}) => `${TRANSPORTS}  conversations: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}"${model} }
agents:
  assistant: { model: fast${agent} }
${rest}`;

t.test('half a surrogate pair does not reach a model server, so the session can be continued', async (t) => {
  const server = await TestServer.start(t, config());
  server.models.respond(({ body }) =>
    JSON.stringify(body.messages).includes('\\ud83d here') ? { status: 400 } : { text: 'Yes' },
  );
  const reply = await server.chat(saying('cut \ud83d here', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  const literal = 'a literal \\ud83d, \\\\ud83d and \u{1f600}';
  t.equal(answerOf(await server.chat(saying(literal, { session_id: 's' }))), 'Yes');
  t.match(server.asked.messages, [{ content: 'cut \ufffd here' }, {}, { content: literal }]);
});

t.test('an error message contains no half of a surrogate pair', async (t) => {
  const server = await TestServer.start(t, config());
  for (const length of [10, 60]) {
    for (const role of [`${'x'.repeat(length)}\u{1f600}${'y'.repeat(30)}`, `${'x'.repeat(length)}\ud83d`]) {
      const reply = await server.chat({ model: 'assistant', messages: [{ role, content: 'Hi' }] });
      t.equal(reply.status, 400);
      t.ok(String(errorOf(reply).message).isWellFormed(), String(errorOf(reply).message));
    }
  }
});

t.test('a request that interrupts is answered even if no request may wait', async (t) => {
  const server = await TestServer.start(t, config({ rest: 'limits: { queuedPerSession: 0 }\n' }));
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Half', gate.promise] }, { text: 'Whole' });
  const first = await server.open(saying('One', { session_id: 's' }));
  await first.until('Half');
  const reply = await server.chat(saying('Two', { session_id: 's' }), { 'x-session-busy': 'interrupt' });
  gate.resolve();
  t.equal(reply.status, 200, reply.text);
  t.equal(answerOf(reply), 'Whole');
});

t.test('a default agent that does not exist is reported as such, whatever its name', async (t) => {
  for (const name of ['constructor', 'toString', '__proto__', 'missing']) {
    const message = new RegExp(`unknown agent "${name}"`);
    await t.rejects(TestServer.start(t, config({ rest: `defaultAgent: ${name}\n` })), { message }, name);
  }
});

t.test('the model is asked for a summary in plain words', async (t) => {
  const server = await TestServer.start(t, config({ model: ', contextWindow: 3000', agent: ', history: summarize' }));
  for (const n of [1, 2, 3]) await server.chat(saying(`${n} ${'word '.repeat(700)}`, { session_id: 's' }));
  const asked = server.models.requests.map(({ body }) => String(body.messages[0]?.content));
  const instructions = asked.filter((text) => text.startsWith('You keep the memory of a conversation'));
  t.not(instructions.length, 0);
  for (const text of instructions) t.match(text, /^Keep what is needed to go on:/m);
});
