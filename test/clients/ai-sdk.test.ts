import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateObject, generateText, jsonSchema, Output, streamText } from 'ai';
import t from 'tap';
import { TestServer } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);
const plugboard = createOpenAICompatible({
  name: 'plugboard',
  baseURL: `${server.url}/v1`,
  apiKey: 'any',
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = plugboard('assistant');
const prompt = 'Where is the treasure?';
const hunt = [
  { toolCalls: [readTreasure], usage: { promptTokens: 10, completionTokens: 2 } },
  { text: ['Under', ' the', ' oak.'], usage: { promptTokens: 20, completionTokens: 3 } },
];

t.test('C-181 ai: generateText', async (t) => {
  server.models.enqueue(...hunt);
  const { text, finishReason, usage, toolCalls } = await generateText({ model, prompt, system: 'Be brief.', temperature: 0.5 });
  t.equal(text, 'Under the oak.');
  t.equal(finishReason, 'stop');
  t.match(usage, { inputTokens: 30, outputTokens: 5, totalTokens: 35 });
  t.strictSame(toolCalls, []);
  t.match(server.asked, { temperature: 0.5, messages: [{ role: 'system', content: 'Be brief.' }] });
});

t.test('C-181 ai: streamText, with usage', async (t) => {
  server.models.enqueue(...hunt);
  const result = streamText({ model, prompt });
  const deltas: string[] = [];
  for await (const delta of result.textStream) deltas.push(delta);
  t.strictSame(deltas, ['Under', ' the', ' oak.']);
  t.equal(await result.finishReason, 'stop');
  t.match(await result.usage, { inputTokens: 30, outputTokens: 5, totalTokens: 35 });
  t.strictSame(await result.toolCalls, [], 'callers do not see the agent’s own calls');
});

t.test('C-181 ai: generateObject, and generateText with an output of that shape', async (t) => {
  const schema = jsonSchema<{ place: string }>({
    type: 'object',
    properties: { place: { type: 'string' } },
    required: ['place'],
    additionalProperties: false,
  });
  const hunt = [{ toolCalls: [readTreasure] }, { text: '{"place":"under the oak"}' }];
  server.models.enqueue(...hunt, ...hunt);
  t.strictSame((await generateObject({ model, prompt, schema })).object, { place: 'under the oak' });
  const { output } = await generateText({ model, prompt, output: Output.object({ schema }) });
  t.strictSame(output, { place: 'under the oak' });
  t.match(server.asked, {
    response_format: { type: 'json_schema', json_schema: { schema: { properties: { place: { type: 'string' } } } } },
  });
});

t.test('C-055 C-181 ai: an image', async (t) => {
  const image = Buffer.from('89504e470d0a1a0a', 'hex');
  const { text } = await generateText({
    model,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'file', data: image, mediaType: 'image/png' },
        ],
      },
    ],
  });
  t.equal(text, 'What is this?');
  t.match(server.asked.messages.at(-1)?.content, [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${image.toString('base64')}` } },
  ]);
});

t.test('C-181 ai: errors, before a stream and in it', async (t) => {
  server.models.enqueue({ status: 400 });
  const failed = await generateText({ model, prompt, maxRetries: 0 }).then(undefined, (error: unknown) => error);
  t.ok(APICallError.isInstance(failed));
  t.match(failed, { statusCode: 502, message: /^The model connection failed: / });

  server.models.enqueue({ text: ['Half', ' of it'], cut: { afterEvents: 2 } });
  const result = streamText({ model, prompt, maxRetries: 0, onError() {} });
  const parts: string[] = [];
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') parts.push(part.text);
    else if (part.type === 'error') parts.push(`error: ${JSON.stringify(part.error)}`);
    else if (part.type === 'finish') parts.push(`finish: ${part.finishReason}`);
  }
  t.match(parts, ['Half', /^error: .*closed the connection/, 'finish: error']);
});

t.test('C-131 C-181 ai: a call that the client retries is one turn of the session', async (t) => {
  const options = { plugboard: { session_id: 'called-twice' } };
  await generateText({ model, prompt: 'One', providerOptions: options });
  const number = server.models.requests.length;
  server.models.enqueue({ status: 400 });
  t.equal((await generateText({ model, prompt: 'Two', providerOptions: options, maxRetries: 1 })).text, 'Two');
  t.equal(server.models.requests.length, number + 2, 'it was made twice');
  await generateText({ model, prompt: 'Three', providerOptions: options });
  t.strictSame(
    server.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content),
    ['One', 'Two', 'Three'],
  );
});
