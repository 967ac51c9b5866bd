// A bare node:http server around the AI SDK.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const model = createOpenAICompatible({ name: 'bench', baseURL: process.env.MODEL_URL })('bench');
const clock = tool({
  description: 'Tells the current date and time in a time zone.',
  inputSchema: z.object({ timeZone: z.string() }),
  execute: ({ timeZone }) => new Date().toLocaleString('en-GB', { timeZone }),
});
const assistant = { model, instructions: 'You are a benchmark.' };
const clerk = { ...assistant, tools: { clock }, stopWhen: isStepCount(5) };
const head = { id: 'chatcmpl-ai-sdk', created: 1763695677, model: 'bench' };

const server = createServer(async (request, response) => {
  try {
    const { model: name, messages, stream } = await json(request);
    const asked = { ...(name === 'clerk' ? clerk : assistant), messages };
    if (!stream) return reply(response, completion((await generateText(asked)).text));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for await (const text of streamText(asked).textStream) response.write(`data: ${JSON.stringify(chunk(text))}\n\n`);
    response.end('data: [DONE]\n\n');
  } catch (error) {
    if (response.headersSent) response.destroy(error);
    else reply(response, { error: { message: error.message } }, 500);
  }
});

function completion(content) {
  const message = { role: 'assistant', content };
  return { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] };
}

function chunk(content) {
  return { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: null }] };
}

function reply(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), '127.0.0.1');
