import t from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

/** A picture whose data URL has 400 KB: far more bytes than the context window has tokens. */
const PICTURE = `data:image/png;base64,${'A'.repeat(400_000)}`;
const picture = { type: 'image_url', image_url: { url: PICTURE } };

const yaml = (agent: string, model = 'contextWindow: 32000, input: [text, image]') => `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, ${model} }
tools: { clock: {} }
agents:
  assistant: { model: fast${agent} }
`;

t.test('an image counts a fixed number of tokens against the context window', async (t) => {
  for (const history of ['truncate', 'error']) {
    const server = await TestServer.start(t, yaml(`, history: ${history}`));
    const fields = { session_id: 's' };
    await server.chat(saying('My name is Ada.', fields));
    const look = {
      model: 'assistant',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Look' }, picture] }],
      ...fields,
    };
    t.equal((await server.chat(look)).status, 200);
    const reply = await server.chat(saying('What do you see?', fields));
    t.equal(reply.status, 200, reply.text);
    t.match(server.asked.messages, [
      { role: 'user', content: 'My name is Ada.' },
      { role: 'assistant' },
      { role: 'user', content: [{ text: 'Look' }, { image_url: { url: PICTURE } }] },
      { role: 'assistant' },
      { role: 'user', content: 'What do you see?' },
    ]);
  }
});

t.test('many images exceed the context window', async (t) => {
  const server = await TestServer.start(t, yaml(', history: error', 'contextWindow: 8000, input: [text, image]'));
  const small = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  const content = Array.from({ length: 20 }, () => small);
  const reply = await server.chat({ model: 'assistant', messages: [{ role: 'user', content }], session_id: 's' });
  t.equal(reply.status, 400);
  t.match(errorOf(reply), { code: 'context_length_exceeded' });
});

t.test('a caller’s tools count against the context window', async (t) => {
  const server = await TestServer.start(t, yaml(', clientTools: passthrough', 'contextWindow: 4000'));
  const tools = [{ type: 'function', function: { name: 'f', description: 'x'.repeat(8_000), parameters: { type: 'object' } } }];
  const fields = { session_id: 's', max_tokens: 100 };
  for (const n of [1, 2, 3]) await server.chat(saying(`${n} ${'word '.repeat(700)}`, fields));
  await server.chat(saying('And with tools?', { ...fields, tools }));
  const all = JSON.stringify([server.asked.messages, server.asked.tools]).length / 4;
  t.ok(all + 100 <= 4000, `${all} tokens of messages and tools fit`);
});

t.test('`max_tokens` as large as the context window leaves the newest turns in the history', async (t) => {
  for (const limit of ['max_tokens', 'max_completion_tokens']) {
    const server = await TestServer.start(t, yaml('', 'contextWindow: 4000'));
    await server.chat(saying('My name is Ada.', { session_id: 's' }));
    await server.chat(saying('What is my name?', { session_id: 's', [limit]: 4000 }));
    t.match(server.asked.messages[0], { content: 'My name is Ada.' }, limit);
  }
});

t.test('with `history: error` a new message that is longer than the context window is refused', async (t) => {
  const server = await TestServer.start(t, yaml(', history: error', 'contextWindow: 4000'));
  const reply = await server.chat(saying('x'.repeat(40_000), { session_id: 's' }));
  t.equal(reply.status, 400);
  t.match(errorOf(reply), { code: 'context_length_exceeded' });
  t.equal(server.models.requests.length, 0);
  t.equal(answerOf(await server.chat(saying('Hello', { session_id: 's' }))), 'Hello');
});
