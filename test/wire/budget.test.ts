import { eventually } from '@plugboard/testing';
import t from 'tap';
import { Receiver, SECRET } from '../../plugins/transport-webhook/test/receiver.js';
import { LiveSocket, textOf } from '../support/live-socket.js';
import { errorOf, saying, TestServer } from '../support/test-server.js';

/** A budget that is spent from the step on that the conversation names. */
const BUDGET = `
import { definePlugin } from '@plugboard/kernel';
import { ModelInterceptors, TurnError } from '@plugboard/kernel/contracts';

export default definePlugin({
  name: 'budget',
  apiVersion: 1,
  summary: 'Refuses requests to models',
  configSchema: { type: 'object', properties: {}, additionalProperties: false },
  register(ctx) {
    ctx.contribute(ModelInterceptors, (call, next) => {
      const from = /spent at step (\\d)/.exec(JSON.stringify(call.request.messages))?.[1];
      if (call.step < Number(from)) return next(call);
      throw new TurnError('insufficient_quota', 'The budget of this token is spent.', { retryAfter: 3_600 });
    });
  },
});
`;

const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
  sse: {}
  responses: {}
  websocket: {}
  messages: {}
  desk: { use: webhook, secret: ${SECRET}, replyUrl: "\${REPLY_URL}", allowPrivate: [127.0.0.1], agent: assistant }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools: { clock: {} }
agents:
  assistant: { model: fast, tools: [clock] }
plugins: { budget: { use: ./budget.js } }
`;

const REFUSED = 'The budget of this token is spent.';
const CUT = 'The agent reached its budget before it finished.';
const usesTool = { toolCalls: [{ name: 'clock', arguments: {} }] };

const receiver = await Receiver.start(t);
const app = await TestServer.start(t, YAML, { files: { 'budget.js': BUDGET }, env: { REPLY_URL: receiver.url } });
const first = 'spent at step 1';
const second = 'spent at step 2';
const message = (content: string, more: object = {}) => ({ ...saying(content, more), max_tokens: 100 });

t.test('C-257 a budget that is spent before the first step is a 429 that clients do not repeat', async (t) => {
  const before = app.models.requests.length;
  const response = { model: 'assistant', input: first };
  for (const [surface, reply] of Object.entries({
    chat: await app.chat(saying(first)),
    'streamed chat': await app.chat(saying(first, { stream: true })),
    'chat in a session': await app.chat(saying(first, { session_id: 'a' })),
    responses: await app.request('POST', '/v1/responses', {}, response),
    'responses that are not stored': await app.request('POST', '/v1/responses', {}, { ...response, store: false }),
    messages: await app.request('POST', '/v1/messages', {}, message(first)),
    'streamed messages': await app.request('POST', '/v1/messages', {}, message(first, { stream: true })),
  })) {
    t.equal(reply.status, 429, surface);
    t.equal(reply.headers.get('x-should-retry'), 'false', surface);
    t.equal(reply.headers.get('retry-after'), '3600', surface);
    const isMessages = surface.endsWith('messages');
    const error = isMessages
      ? { type: 'rate_limit_error', message: REFUSED, details: { error_code: 'insufficient_quota' } }
      : { type: 'insufficient_quota', code: 'insufficient_quota', param: null, message: REFUSED };
    t.match(errorOf(reply), error, surface);
  }
  t.equal(app.models.requests.length, before, 'no model was asked');
});

t.test('C-257 on a stream of the Responses API and on a socket, the response fails with the code', async (t) => {
  const failed = { type: 'response.failed', response: { error: { code: 'insufficient_quota', message: REFUSED } } };
  const streamed = await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: first, stream: true });
  const events = streamed.text.split('\n').filter((line) => line.startsWith('data: {'));
  t.match(JSON.parse(events.at(-1)?.slice('data: '.length) ?? 'null'), failed);
  const socket = await LiveSocket.open(t, app);
  socket.create({ model: 'assistant', input: first });
  t.match((await socket.turn()).at(-1), failed);
  const codex = await LiveSocket.open(t, app, { headers: { 'user-agent': 'codex_cli_rs/0.120.0 (Linux)' } });
  codex.create({ model: 'assistant', input: first });
  t.match((await codex.turn()).at(-1), failed, 'Codex CLI knows the code');
});

t.test('C-257 after the first step the turn ends with length, on every surface', async (t) => {
  const next = () => app.models.enqueue(usesTool);
  for (const stream of [false, true]) {
    next();
    const reply = await app.chat(saying(second, { stream }));
    t.equal(reply.status, 200);
    t.match(reply.text, '"finish_reason":"length"');
    t.match(reply.text, CUT);

    next();
    const said = await app.request('POST', '/v1/messages', {}, message(second, { stream }));
    t.equal(said.status, 200);
    t.match(said.text, '"stop_reason":"max_tokens"');
    t.match(said.text, CUT);
  }

  next();
  const whole = await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: second });
  const incomplete = { status: 'incomplete', incomplete_details: { reason: 'budget' }, error: null };
  t.match(whole.body, incomplete);
  t.match(whole.body, { output: [{ type: 'mcp_call' }, { type: 'message', status: 'completed', content: [{ text: CUT }] }] });

  next();
  const socket = await LiveSocket.open(t, app);
  const response = await socket.ask({ model: 'assistant', input: second });
  t.match(response, incomplete);
  t.equal(textOf(response), CUT);

  next();
  app.models.enqueue({ text: 'It went on.' });
  await app.chat(saying(second, { session_id: 'b' }));
  t.match((await app.chat(saying('And now?', { session_id: 'b' }))).text, 'It went on.', 'the session is not harmed');
});

t.test('C-257 a channel says what became of the message, once', async (t) => {
  const say = (id: string, text: string) => receiver.say(`${app.url}/channels/desk`, id, { chat: id, sender: 'ann', text });
  await say('m1', first);
  await eventually(() => receiver.replies.length === 1);
  t.match(receiver.replies[0]?.text, REFUSED);
  app.models.enqueue(usesTool);
  await say('m2', second);
  await eventually(() => receiver.replies.length === 2);
  t.match(receiver.replies[1]?.text, CUT);
});
