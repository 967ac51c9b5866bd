import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';
import t from 'tap';
import { TestServer } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);
const prompt = 'Where is the treasure?';
const hunt = [{ toolCalls: [readTreasure] }, { text: ['Under', ' the', ' oak.'] }];

setTracingDisabled(true);
setOpenAIAPI('chat_completions');
setDefaultOpenAIClient(new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 }));

const agent = new Agent({ name: 'Finder', instructions: 'Be brief.', model: 'assistant' });

t.test('C-182 @openai/agents over chat completions: a run', async (t) => {
  server.models.enqueue(...hunt);
  const result = await run(agent, prompt);
  t.equal(result.finalOutput, 'Under the oak.');
  t.equal(result.newItems.length, 1, 'one message, and no call of a tool');
  t.match(server.asked.messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user' }]);
});

t.test('C-182 @openai/agents over chat completions: a stream', async (t) => {
  server.models.enqueue(...hunt);
  const result = await run(agent, prompt, { stream: true });
  const deltas: string[] = [];
  for await (const delta of result.toTextStream()) deltas.push(delta);
  await result.completed;
  t.equal(deltas.join(''), 'Under the oak.');
  t.equal(result.finalOutput, 'Under the oak.');
});

t.test('C-182 @openai/agents over chat completions: a conversation, and an error', async (t) => {
  const first = await run(agent, 'One');
  const second = await run(agent, [...first.history, { role: 'user', content: 'Two' }]);
  t.equal(second.finalOutput, 'Two');
  t.strictSame(
    server.asked.messages.map(({ role }) => role),
    ['system', 'user', 'assistant', 'user'],
  );
  server.models.enqueue({ status: 400 }, { text: ['Half', ' of it'], cut: { afterEvents: 2 } });
  await t.rejects(run(agent, prompt), /^502 The model connection failed/);
  const broken = await run(agent, prompt, { stream: true });
  await t.rejects(async () => {
    for await (const _ of broken.toTextStream());
    await broken.completed;
  }, /closed the connection/);
});
