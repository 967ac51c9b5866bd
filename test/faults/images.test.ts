import t from 'tap';
import { errorOf, saying, TRANSPORTS, World } from '../support/world.js';

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

t.test('a fall-back connection that takes text only is sent a note in place of an image', async (t) => {
  const world = await World.start(t, YAML);
  world.models.respond(({ body }) => (body.model === 'seeing-1' ? { status: 400 } : { text: 'I cannot see.' }));
  const reply = await world.chat({ model: 'assistant', messages: [look] });
  t.equal(reply.status, 200, reply.text);
  t.equal(world.asked.model, 'blind-1');
  t.type(world.asked.messages[0]?.content, 'string');
  t.match(world.asked.messages[0]?.content, /^Look/);
  t.match(world.asked.messages[0]?.content, NOTE);
});

t.test('an image of an earlier turn becomes a note once the connection takes text only', async (t) => {
  const world = await World.start(t, YAML);
  let isDown = false;
  world.models.respond(({ body }) => (isDown && body.model === 'seeing-1' ? { status: 400 } : { text: 'Yes' }));
  await world.chat({ model: 'assistant', messages: [look], session_id: 's' });
  isDown = true;
  const reply = await world.chat(saying('And now?', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  t.match(world.asked.messages[0]?.content, NOTE);
});

t.test('an image in messages that a session ignores is not refused', async (t) => {
  const world = await World.start(t, YAML);
  const first = { model: 'reader', messages: [{ role: 'user', content: 'Hi' }], session_id: 's' };
  await world.chat(first);
  const resent = [look, { role: 'assistant', content: 'Yes' }, { role: 'user', content: 'And?' }];
  const reply = await world.chat({ model: 'reader', messages: resent, session_id: 's' });
  t.equal(reply.status, 200, reply.text);
});

t.test('a new image for an agent whose connections all take text only is refused', async (t) => {
  const world = await World.start(t, YAML);
  for (const fields of [{}, { session_id: 's' }]) {
    const reply = await world.chat({ model: 'reader', messages: [look], ...fields });
    t.equal(reply.status, 400);
    t.match(errorOf(reply), { param: 'messages[0].content[1]', code: 'invalid_value' });
  }
});
