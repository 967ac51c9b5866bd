import t from 'tap';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const yaml = (contextWindow: number, agent: string) => `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, contextWindow: ${contextWindow} }
agents:
  assistant: { model: fast, ${agent} }
`;

t.test('a session that outgrew a fall-back connection is cut to fit it', async (t) => {
  const server = await TestServer.start(
    t,
    `${TRANSPORTS}
models:
  large: { use: openai, baseUrl: "\${MODEL_URL}", model: large-1, contextWindow: 100000 }
  small: { use: openai, baseUrl: "\${MODEL_URL}", model: small-1, contextWindow: 3000 }
agents:
  assistant: { model: [large, small], system: Be brief. }
`,
  );
  const say = (text: string) => server.chat(saying(text, { session_id: 's' }));
  for (const n of [1, 2, 3, 4, 5]) await say(`${n} ${'word '.repeat(500)}`);
  t.equal(server.asked.messages.length, 10, 'the first connection is sent everything');
  server.models.respond(({ body }) => {
    const isTooLong = JSON.stringify(body.messages).length > 3000 * 4;
    return body.model === 'large-1' ? { status: 401 } : isTooLong ? { status: 400 } : { text: 'Here I am.' };
  });
  const reply = await say('And now?');
  t.equal(reply.status, 200, reply.text);
  t.equal(answerOf(reply), 'Here I am.');
  t.match(server.asked.messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: /^5 / },
    { role: 'assistant' },
    { role: 'user', content: 'And now?' },
  ]);
});

t.test('the model is asked for a summary in plain words', async (t) => {
  const server = await TestServer.start(t, yaml(3000, 'history: summarize'));
  for (const n of [1, 2, 3]) await server.chat(saying(`${n} ${'word '.repeat(700)}`, { session_id: 's' }));
  const asked = server.models.requests.map(({ body }) => String(body.messages[0]?.content));
  const instructions = asked.filter((text) => text.startsWith('You keep the memory of a conversation'));
  t.not(instructions.length, 0);
  for (const text of instructions) t.match(text, /^Keep what is needed to continue:/m);
});
