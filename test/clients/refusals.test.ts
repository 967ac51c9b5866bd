/** A refusal of the model is where helpers of the SDK look for it, on both protocols. */
import OpenAI from 'openai';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { TestServer } from '../support/test-server.js';

t.test('C-077 a refusal is `refusal` on chat completions and a refusal part on Responses, streamed or not', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'any', maxRetries: 0 });
  app.models.respond({ refusal: ['I can', 'not.'] });
  const messages = [{ role: 'user' as const, content: 'x' }];
  const refused = { content: null, refusal: 'I cannot.' };

  t.match((await client.chat.completions.create({ model: 'assistant', messages })).choices[0]?.message, refused);
  const stream = client.chat.completions.stream({ model: 'assistant', messages });
  let streamed = '';
  stream.on('refusal.delta', ({ delta }) => {
    streamed += delta;
  });
  t.match(await stream.finalMessage(), { refusal: 'I cannot.' });
  t.equal(streamed, 'I cannot.');

  const parts = [{ type: 'refusal', refusal: 'I cannot.' }];
  const response = await client.responses.create({ model: 'assistant', input: 'x' });
  t.match(response.output, [{ type: 'message', content: parts }]);
  let deltas = '';
  const events = client.responses.stream({ model: 'assistant', input: 'x' });
  events.on('response.refusal.delta', ({ delta }) => {
    deltas += delta;
  });
  t.match((await events.finalResponse()).output, [{ type: 'message', content: parts }]);
  t.equal(deltas, 'I cannot.');

  await client.responses.create({ model: 'assistant', previous_response_id: response.id, input: 'Why?' });
  t.match(app.asked.messages[2], { role: 'assistant', refusal: 'I cannot.' }, 'the model receives its refusal as such');
  const key = { headers: { 'idempotency-key': 'k' } };
  for (let attempt = 0; attempt < 2; attempt++) {
    const { choices } = await client.chat.completions.create({ model: 'assistant', messages }, key);
    t.match(choices[0]?.message, refused, 'also when it is replayed');
  }
});
