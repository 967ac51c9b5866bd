import t from 'tap';
import { errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
const look = { role: 'user', content: [{ type: 'text', text: 'Look' }, picture] };

const YAML = `${TRANSPORTS}
models:
  seeing: { use: openai, baseUrl: "\${MODEL_URL}", model: seeing-1, input: [text, image] }
  blind: { use: openai, baseUrl: "\${MODEL_URL}", model: blind-1, input: [text] }
agents:
  assistant: { model: [seeing, blind] }
  reader: { model: blind }
`;

const NOTE = /image.*omitted/;

t.test('a text-only fallback connection receives a note instead of an image', async (t) => {
  const server = await TestServer.start(t, YAML);
  server.models.respond(({ body }) => (body.model === 'seeing-1' ? { status: 400 } : { text: 'I cannot see.' }));
  const reply = await server.chat({ model: 'assistant', messages: [look] });
  t.equal(reply.status, 200, reply.text);
  t.equal(server.asked.model, 'blind-1');
  t.type(server.asked.messages[0]?.content, 'string');
  t.match(server.asked.messages[0]?.content, /^Look/);
  t.match(server.asked.messages[0]?.content, NOTE);
});

t.test('an image of an earlier turn becomes a note if the connection is text-only', async (t) => {
  const server = await TestServer.start(t, YAML);
  let isDown = false;
  server.models.respond(({ body }) => (isDown && body.model === 'seeing-1' ? { status: 400 } : { text: 'Yes' }));
  await server.chat({ model: 'assistant', messages: [look], session_id: 's' });
  isDown = true;
  const reply = await server.chat(saying('And now?', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  t.match(server.asked.messages[0]?.content, NOTE);
});

t.test('an image in messages that the session ignores is not refused', async (t) => {
  const server = await TestServer.start(t, YAML);
  const first = { model: 'reader', messages: [{ role: 'user', content: 'Hi' }], session_id: 's' };
  await server.chat(first);
  const resent = [look, { role: 'assistant', content: 'Yes' }, { role: 'user', content: 'And?' }];
  const reply = await server.chat({ model: 'reader', messages: resent, session_id: 's' });
  t.equal(reply.status, 200, reply.text);
});

t.test('a new image is refused if all connections of the agent are text-only', async (t) => {
  const server = await TestServer.start(t, YAML);
  for (const fields of [{}, { session_id: 's' }]) {
    const reply = await server.chat({ model: 'reader', messages: [look], ...fields });
    t.equal(reply.status, 400);
    t.match(errorOf(reply), { param: 'messages[0].content[1]', code: 'invalid_value' });
  }
});
