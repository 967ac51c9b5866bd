// A bare node:http server around the openai SDK.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.env.MODEL_URL, apiKey: 'none' });
const prompt = { role: 'system', content: 'You are a benchmark.' };
const clock = {
  type: 'function',
  function: {
    name: 'clock',
    description: 'Tells the current date and time in a time zone.',
    parameters: { type: 'object', properties: { timeZone: { type: 'string' } } },
  },
};

const server = createServer(async (request, response) => {
  try {
    const { model, messages, stream } = await json(request);
    const asked = { model: 'bench', messages: [prompt, ...messages], ...(model === 'clerk' && { tools: [clock] }) };
    if (!stream) return reply(response, await answer(asked));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end('data: [DONE]\n\n');
  } catch (error) {
    if (response.headersSent) response.destroy(error);
    else reply(response, { error: { message: error.message } }, 500);
  }
});

/** Asks the model until it calls no tool. */
async function answer(asked) {
  for (;;) {
    const completion = await client.chat.completions.create(asked);
    const [{ message }] = completion.choices;
    if (!message.tool_calls) return completion;
    const results = message.tool_calls.map(({ id, function: { arguments: text } }) => ({
      role: 'tool',
      tool_call_id: id,
      content: new Date().toLocaleString('en-GB', { timeZone: JSON.parse(text).timeZone }),
    }));
    asked = { ...asked, messages: [...asked.messages, message, ...results] };
  }
}

function reply(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), '127.0.0.1');
