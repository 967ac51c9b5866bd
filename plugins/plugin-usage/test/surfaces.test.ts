import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { LiveSocket } from '../../../test/support/live-socket.js';
import { TestServer } from '../../../test/support/test-server.js';
import { parseMoney, textOf } from '../src/money/money.js';
import type { Report } from './support.js';

const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
  sse: {}
  responses: {}
  websocket: {}
  messages: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
  gone: { use: openai, baseUrl: "\${MODEL_URL}", model: big-0 }
tools: { clock: {} }
agents:
  assistant: { model: fast }
  clerk: { model: fast, tools: [clock] }
  double: { model: [gone, fast] }
  historian: { model: fast, history: { policy: summarize, maxTokens: 800 } }
plugins:
  usage:
    prices:
      fast: { input: 2, cachedInput: 0.5, output: 8, reasoning: 10 }
      gone: { input: 99, output: 99 }
`;
/** 600 × 2 + 400 × 0.5 + 150 × 8 + 50 × 10 millionths. */
const CALL = '0.0031';
const USAGE = { promptTokens: 1_000, cachedTokens: 400, completionTokens: 200, reasoningTokens: 50 };

/** Sends one turn, and reads its answer to the end. */
type Surface = (agent: string, text: string, session?: string) => Promise<unknown>;

t.test('OB-8 a turn costs the same on every surface, plain and streamed', async (t) => {
  const server = await TestServer.start(t, YAML, { ids: new SequentialIds([0]) });
  server.models.respond(({ body }) => {
    if (body.model === 'big-0') return { status: 401 };
    const isFirst = Array.isArray(body.tools) && body.messages.at(-1)?.role !== 'tool';
    return isFirst ? { toolCalls: [{ name: 'clock', arguments: {} }], usage: USAGE } : { text: ['Good', ' day.'], usage: USAGE };
  });
  let charged: bigint[] = [];
  const listener = (message: unknown) => void charged.push(parseMoney((message as { cost: string }).cost));
  subscribe('plugboard.charge', listener);
  t.teardown(() => unsubscribe('plugboard.charge', listener));

  const post = async (path: string, body: object, headers: Readonly<Record<string, string>> = {}) => {
    const { status, text } = await server.request('POST', path, headers, body);
    if (status !== 200 || /"error":\{|response\.failed/.test(text)) throw new Error(`${path}: ${status} ${text}`);
  };
  const socket = await LiveSocket.open(t, server);
  const chat =
    (stream: boolean): Surface =>
    (model, content, session_id) =>
      post('/v1/chat/completions', { model, stream, session_id, messages: [{ role: 'user', content }] });
  const responses =
    (stream: boolean): Surface =>
    (model, input, session) =>
      post('/v1/responses', { model, stream, input, store: false }, session ? { 'x-session-id': session } : {});
  const messages =
    (stream: boolean): Surface =>
    (model, content, session) =>
      post(
        '/v1/messages',
        { model, stream, max_tokens: 500, messages: [{ role: 'user', content }] },
        session ? { 'x-session-id': session } : {},
      );
  const surfaces: Readonly<Record<string, Surface>> = {
    'chat completions': chat(false),
    'chat completions, streamed': chat(true),
    responses: responses(false),
    'responses, streamed': responses(true),
    'responses, socket': (model, input) => socket.ask({ model, input, store: false }),
    messages: messages(false),
    'messages, streamed': messages(true),
  };

  /** What to send, and how many answers of the model it takes. */
  const turns: Readonly<Record<string, [number, (surface: Surface, session: string) => Promise<unknown>]>> = {
    answer: [1, (surface) => surface('assistant', 'Hello')],
    'tool call': [2, (surface) => surface('clerk', 'What time is it?')],
    retry: [
      1,
      (surface) => {
        server.models.enqueue({ status: 503, retryAfter: 0 });
        return surface('assistant', 'Hello');
      },
    ],
    fallback: [1, (surface) => surface('double', 'Hello')],
    session: [
      2,
      async (surface, session) => {
        await surface('assistant', 'Hello', session);
        await surface('assistant', 'And now?', session);
      },
    ],
  };
  const costOf = async (send: () => Promise<unknown>) => {
    charged = [];
    await send();
    return textOf(charged.reduce((sum, cost) => sum + cost, 0n));
  };

  const table: string[] = [`| surface | ${Object.keys(turns).join(' | ')} | summary |`];
  let sum = 0n;
  for (const [name, surface] of Object.entries(surfaces)) {
    const costs: string[] = [];
    for (const [turn, [calls, send]] of Object.entries(turns)) {
      const cost = await costOf(() => send(surface, `of ${name}`));
      t.equal(cost, textOf(BigInt(calls) * parseMoney(CALL)), `${name}: ${turn}`);
      costs.push(cost);
    }
    const hasSessions = name.startsWith('chat');
    const summary = hasSessions
      ? await costOf(async () => {
          for (let n = 0; n < 4; n++) await surface('historian', 'word '.repeat(200), `long ${name}`);
        })
      : '–';
    if (hasSessions) t.ok(parseMoney(summary) > 4n * parseMoney(CALL), `${name}: summaries are charged`);
    costs.push(summary);
    for (const cost of costs) if (cost !== '–') sum += parseMoney(cost);
    table.push(`| ${name} | ${costs.join(' | ')} |`);
  }
  t.comment(`\n${table.join('\n')}`);
  t.equal(table[1]?.split('|').at(-2), table[2]?.split('|').at(-2), 'with summaries, streamed or not');

  const { body } = await server.get('/v1/usage?by=model');
  const { data, total } = body as Report;
  t.equal(total.cost, textOf(sum), 'the report has what was charged');
  t.match(data, [{ model: 'fast', unpriced_calls: 0, estimated_calls: 0 }]);
  t.equal(data.length, 1, 'an attempt without an answer is no call');
});

t.test('OB-12 a client that leaves in the middle of a stream is charged for what arrived', async (t) => {
  const server = await TestServer.start(t, YAML);
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['x'.repeat(4_000), gate.promise] });
  const stream = await server.open({ model: 'assistant', messages: [{ role: 'user', content: 'Hello' }] });
  await stream.until('xxxx');
  const charged = Promise.withResolvers<unknown>();
  subscribe('plugboard.charge', charged.resolve);
  t.teardown(() => unsubscribe('plugboard.charge', charged.resolve));
  stream.leave();
  await charged.promise;
  gate.resolve();
  const { total } = (await server.get('/v1/usage')).body as Report;
  t.match(total, { calls: 1, estimated_calls: 1, output_tokens: 1_000 });
});

t.test('a spent budget is a 429 with the time to wait, on every surface', async (t) => {
  const budget = '    budgets: [{ amount: 0.003, per: day, agent: assistant }]\n';
  const server = await TestServer.start(t, YAML + budget);
  server.models.respond({ text: 'Good day.', usage: USAGE });
  const hello = [{ role: 'user', content: 'Hello' }];
  t.equal((await server.chat({ model: 'assistant', messages: hello })).status, 200);
  const asked = server.models.requests.length;
  const bodies = {
    '/v1/chat/completions': { model: 'assistant', messages: hello },
    '/v1/responses': { model: 'assistant', input: 'Hello' },
    '/v1/messages': { model: 'assistant', max_tokens: 5, messages: hello },
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const stream of [false, true]) {
      const reply = await server.request('POST', path, {}, { ...body, stream });
      t.match(reply.text, /The budget of 0\.003 USD per day for the agent assistant is spent/);
      if (stream && path === '/v1/responses') {
        t.match(reply.text, /event: response\.failed\n.*"code":"insufficient_quota"/); // its head was sent
        continue;
      }
      t.equal(reply.status, 429, `${path}, stream: ${stream}`);
      t.equal(reply.headers.get('x-should-retry'), 'false');
      const wait = Number(reply.headers.get('retry-after'));
      t.ok(wait > 0 && wait <= 86_400, `Retry-After ${wait}`);
      if (!path.endsWith('messages')) t.match(reply.body, { error: { type: 'insufficient_quota', code: 'insufficient_quota' } });
    }
  }
  t.equal(server.models.requests.length, asked, 'the model is not asked');
  t.equal((await server.chat({ model: 'double', messages: hello })).status, 200, 'another agent goes on');
  t.match((await server.get('/v1/usage')).body, { budgets: [{ spent: CALL, left: '0' }] });
});

t.test('a budget that is spent between two steps ends the turn with `length`', async (t) => {
  const budget = '    budgets: [{ amount: 0.003, per: day }]\n';
  const server = await TestServer.start(t, YAML + budget);
  server.models.respond({ toolCalls: [{ name: 'clock', arguments: {} }], usage: USAGE });
  const { status, body } = await server.chat({ model: 'clerk', messages: [{ role: 'user', content: 'What time is it?' }] });
  t.equal(status, 200);
  const content = 'The agent reached its budget before it finished.';
  t.match(body, { choices: [{ finish_reason: 'length', message: { content } }] });
});
