import { createOpenAI } from '@ai-sdk/openai';
import { Agent, tool as agentTool, OpenAIProvider, OpenAIResponsesWSModel, Runner, setTracingDisabled } from '@openai/agents';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import * as openai6 from 'openai-6';
import * as sockets6 from 'openai-6/resources/responses/ws';
import t from 'tap';
import { z } from 'zod';
import { LIVE_TRANSPORTS } from '../support/live.js';
import { TestServer, TRANSPORTS } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

const server = await TestServer.start(t, WITH_TOOLS.replace(TRANSPORTS, LIVE_TRANSPORTS), toolFixtures);
const options = { baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 };
const prompt = 'Where is the treasure?';
const hunt = [{ toolCalls: [readTreasure] }, { text: ['Under', ' the', ' oak.'] }];
const weatherCall = { id: 'call_w', name: 'weather', arguments: { city: 'Paris' } };
const weatherTool = {
  type: 'function' as const,
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
  strict: true,
};

setTracingDisabled(true);
const client = new OpenAI(options);
/** `run` would keep the client that was the default when this process first called it. */
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }) });

/** The two lines of the SDK that are in use. The older one has the types of the newer one here. */
const libraries = {
  'openai 7': { client, ResponsesWS },
  'openai 6': {
    client: new openai6.OpenAI(options) as unknown as OpenAI,
    ResponsesWS: sockets6.ResponsesWS as unknown as typeof ResponsesWS,
  },
};

for (const [library, { client, ResponsesWS }] of Object.entries(libraries)) {
  t.test(`${library}: responses.create, plain`, async (t) => {
    server.models.enqueue(...hunt);
    const response = await client.responses.create({ model: 'assistant', input: prompt, metadata: { ticket: '42' } });
    t.equal(response.output_text, 'Under the oak.');
    t.match(response, { status: 'completed', model: 'assistant', metadata: { ticket: '42' }, usage: {} });
    t.match(response.output[0], { type: 'mcp_call', server_label: 'files', name: 'read_text_file', status: 'completed' });
    t.match(JSON.stringify(response.output[0]), /The treasure lies under the oak/);

    const again = await client.responses.retrieve(response.id);
    t.same(again.output, response.output);
    server.models.enqueue({ text: ['Yes.'] });
    const next = await client.responses.create({ model: 'assistant', input: 'Sure?', previous_response_id: response.id });
    t.equal(next.previous_response_id, response.id);
    t.same(
      server.asked.messages.map(({ role }) => role),
      ['system', 'user', 'assistant', 'tool', 'assistant', 'user'],
    );
    t.same(await client.responses.delete(next.id), { id: next.id, object: 'response', deleted: true });
    await t.rejects(client.responses.retrieve(next.id), { status: 404, code: 'response_not_found' });
  });

  t.test(`${library}: responses.create, streamed`, async (t) => {
    server.models.enqueue(...hunt);
    const stream = await client.responses.create({ model: 'assistant', input: prompt, stream: true });
    const types: string[] = [];
    let text = '';
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    t.equal(text, 'Under the oak.');
    t.ok(types.includes('response.mcp_call.completed'));
    t.equal(types.at(-1), 'response.completed');
  });

  t.test(`${library}: the helper responses.stream, and function tools of the caller`, async (t) => {
    server.models.enqueue({ toolCalls: [{ ...weatherCall, arguments: ['{"city"', ':"Par', 'is"}'] }] }, { text: ['Sunny.'] });
    const stream = client.responses.stream({ model: 'bare', input: 'Weather in Paris?', tools: [weatherTool] });
    const snapshots: string[] = [];
    stream.on('response.function_call_arguments.delta', ({ snapshot }) => snapshots.push(snapshot));
    const first = await stream.finalResponse();
    const [call] = first.output;
    t.match(call, { type: 'function_call', name: 'weather', arguments: '{"city":"Paris"}' });
    t.same(snapshots, ['{"city"', '{"city":"Par', '{"city":"Paris"}']);
    const call_id = call?.type === 'function_call' ? call.call_id : '';
    const second = await client.responses.create({
      model: 'bare',
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id, output: 'sunny' }],
      tools: [weatherTool],
    });
    t.equal(second.output_text, 'Sunny.');
    t.match(server.asked.messages.at(-1), { role: 'tool', tool_call_id: 'call_w', content: 'sunny' });
  });

  t.test(`${library}: a stream is resumed, and a response cancelled`, async (t) => {
    const gate = Promise.withResolvers<void>();
    server.models.enqueue({ text: ['Half', gate.promise, ' and half.'] });
    const stream = await client.responses.create({ model: 'bare', input: 'Go', stream: true });
    let id = '';
    let last = -1;
    for await (const event of stream) {
      if (event.type === 'response.created') id = event.response.id;
      last = event.sequence_number;
      if (event.type === 'response.output_text.delta') break;
    }
    gate.resolve();
    const resumed = await client.responses.retrieve(id, { stream: true, starting_after: last });
    const events = [];
    for await (const event of resumed) events.push(event);
    t.equal(events[0]?.sequence_number, last + 1);
    t.match(events.at(-1), { type: 'response.completed', response: { output: [{ content: [{ text: 'Half and half.' }] }] } });

    const never = Promise.withResolvers<void>();
    server.models.enqueue({ text: ['So', never.promise] });
    const running = await client.responses.create({ model: 'bare', input: 'Go', stream: true });
    let end: unknown;
    for await (const event of running) {
      if (event.type === 'response.created') id = event.response.id;
      if (event.type === 'response.output_text.delta') {
        t.match(await client.responses.cancel(id), { status: 'incomplete', incomplete_details: { reason: 'cancelled' } });
      }
      end = event;
    }
    t.match(end, { type: 'response.incomplete', response: { incomplete_details: { reason: 'cancelled' } } });
    never.resolve();
  });

  t.test(`${library}: each error has the right class`, async (t) => {
    await t.rejects(client.responses.create({ model: 'bare', input: 'x', previous_response_id: 'resp_nope' }), {
      status: 400,
      code: 'previous_response_not_found',
      param: 'previous_response_id',
    });
    await t.rejects(client.responses.create({ model: 'bare', input: 'x', background: true }), {
      status: 400,
      code: 'unsupported_parameter',
    });
    server.models.enqueue({ status: 400 });
    await t.rejects(client.responses.create({ model: 'bare', input: 'x' }), /^502 The model connection/);
  });

  t.test(`${library}: ResponsesWS`, async (t) => {
    server.models.enqueue(...hunt);
    const ws = new ResponsesWS(client);
    const events: OpenAI.Responses.ResponsesServerEvent[] = [];
    const done = new Promise<void>((resolve, reject) => {
      ws.on('event', (event) => {
        events.push(event);
        if (event.type === 'response.completed') resolve();
      });
      ws.on('error', reject);
    });
    ws.send({ type: 'response.create', model: 'assistant', input: prompt, store: false });
    await done;
    ws.close();
    const last = events.at(-1);
    t.match(last, { type: 'response.completed', response: { output: [{ type: 'mcp_call' }, { type: 'message' }] } });
    t.same(
      events.map((event) => 'sequence_number' in event && event.sequence_number),
      events.map((_, index) => index),
    );
  });
}

const finder = new Agent({ name: 'Finder', model: 'assistant' });
const forecast = agentTool({
  name: 'weather',
  description: 'The weather of a city',
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});

t.test('@openai/agents, default mode: server tools run on the server, the client’s own on the client', async (t) => {
  server.models.enqueue(...hunt);
  const result = await runner.run(finder, prompt);
  t.equal(result.finalOutput, 'Under the oak.');
  server.models.enqueue({ text: ['Yes.'] });
  const more = await runner.run(finder, [...result.history, { role: 'user', content: 'Sure?' }]);
  t.equal(more.finalOutput, 'Yes.');
  server.models.enqueue({ text: ['Quite.'] });
  const chained = await runner.run(finder, 'Really?', { previousResponseId: result.lastResponseId });
  t.equal(chained.finalOutput, 'Quite.');

  server.models.enqueue({ toolCalls: [weatherCall] }, { text: ['Sunny.'] });
  const weather = new Agent({ name: 'Weather', model: 'bare', tools: [forecast] });
  t.equal((await runner.run(weather, 'Weather in Paris?')).finalOutput, 'Sunny.');
  t.match(server.asked.messages.at(-1), { role: 'tool', content: 'sunny in Paris' });
});

t.test('@openai/agents, default mode: streamed', async (t) => {
  server.models.enqueue(...hunt);
  const result = await runner.run(finder, prompt, { stream: true });
  let text = '';
  for await (const delta of result.toTextStream()) text += delta;
  await result.completed;
  t.equal(text, 'Under the oak.');
});

t.test('@openai/agents, websocket mode', async (t) => {
  server.models.enqueue(...hunt);
  const model = new OpenAIResponsesWSModel(client, 'assistant');
  const result = await runner.run(new Agent({ name: 'Finder', model }), prompt);
  t.equal(result.finalOutput, 'Under the oak.');
  await model.close();

  server.models.enqueue({ toolCalls: [weatherCall] }, { text: ['Sunny.'] });
  const own = new OpenAIResponsesWSModel(client, 'bare');
  const streamed = await runner.run(new Agent({ name: 'Weather', model: own, tools: [forecast] }), 'Weather in Paris?', {
    stream: true,
  });
  for await (const _ of streamed.toTextStream());
  await streamed.completed;
  t.equal(streamed.finalOutput, 'Sunny.');
  await own.close();
});

const openai = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });

t.test('@ai-sdk/openai with its default model: text, stream, and a conversation of item references', async (t) => {
  server.models.enqueue(...hunt);
  const result = await generateText({ model: openai('assistant'), prompt });
  t.equal(result.text, 'Under the oak.');
  t.match(result.content, [{ type: 'tool-call', toolName: 'mcp.read_text_file', providerExecuted: true }]);

  server.models.enqueue({ text: ['Yes.'] });
  const next = await generateText({
    model: openai('assistant'),
    messages: [{ role: 'user', content: prompt }, ...result.response.messages, { role: 'user', content: 'Sure?' }],
  });
  t.equal(next.text, 'Yes.');
  t.match(server.asked.messages.at(-2), { role: 'assistant', content: 'Under the oak.' });

  server.models.enqueue(...hunt);
  const stream = streamText({ model: openai('assistant'), prompt });
  let text = '';
  for await (const delta of stream.textStream) text += delta;
  t.equal(text, 'Under the oak.');
});

t.test('@ai-sdk/openai with its default model: tools of the client, stored and not', async (t) => {
  for (const store of [true, false]) {
    server.models.enqueue({ toolCalls: [weatherCall] }, { text: ['Sunny.'] });
    const { text } = await generateText({
      model: openai('bare'),
      prompt: 'Weather in Paris?',
      tools: {
        weather: tool({
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => `sunny in ${city}`,
        }),
      },
      stopWhen: stepCountIs(3),
      providerOptions: { openai: { store } },
    });
    t.equal(text, 'Sunny.');
    t.match(server.asked.messages.at(-1), { role: 'tool' });
  }
});
