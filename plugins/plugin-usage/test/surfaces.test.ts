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
    return text;
  };
  const socket = await LiveSocket.open(t, server);
  /** By session: its last response. */
  const previous = new Map<string | undefined, string>();
  const inputOf = (model: string, input: string, session: string | undefined) => {
    const previous_response_id = previous.get(session);
    return { model, input, store: session !== undefined, ...(previous_response_id && { previous_response_id }) };
  };
  const continued = (session: string | undefined, id = '') => session !== undefined && previous.set(session, id);
  const messagesOf = (content: string) => [{ role: 'user', content }];

  const chat =
    (stream: boolean): Surface =>
    (model, text, session_id) =>
      post('/v1/chat/completions', { model, stream, session_id, messages: messagesOf(text) });
  const responses =
    (stream: boolean): Surface =>
    async (model, text, session) => {
      const answer = await post('/v1/responses', { ...inputOf(model, text, session), stream });
      continued(session, /"id":"(resp_\w+)"/.exec(answer)?.[1]);
    };
  const messages =
    (stream: boolean): Surface =>
    (model, text, session) => {
      const headers: Readonly<Record<string, string>> = session === undefined ? {} : { 'x-session-id': session };
      return post('/v1/messages', { model, stream, max_tokens: 500, messages: messagesOf(text) }, headers);
    };
  const surfaces: Readonly<Record<string, Surface>> = {
    'chat completions': chat(false),
    'chat completions, streamed': chat(true),
    responses: responses(false),
    'responses, streamed': responses(true),
    'responses, socket': async (model, text, session) => {
      const { id, status } = await socket.ask(inputOf(model, text, session));
      if (status !== 'completed') throw new Error(`the response is ${status}`);
      continued(session, id);
    },
    messages: messages(false),
    'messages, streamed': messages(true),
  };

  const long = 'word '.repeat(200);
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
    summary: [
      5, // one of them summarizes
      async (surface, session) => {
        for (let n = 0; n < 4; n++) await surface('historian', long, `long ${session}`);
      },
    ],
  };

  const table: string[] = [`| surface | ${Object.keys(turns).join(' | ')} |`];
  let sum = 0n;
  for (const [name, surface] of Object.entries(surfaces)) {
    const costs: string[] = [];
    for (const [turn, [calls, send]] of Object.entries(turns)) {
      charged = [];
      await send(surface, name);
      const cost = charged.reduce((before, one) => before + one, 0n);
      t.equal(textOf(cost), textOf(BigInt(calls) * parseMoney(CALL)), `${name}: ${turn}`);
      costs.push(textOf(cost));
      sum += cost;
    }
    table.push(`| ${name} | ${costs.join(' | ')} |`);
  }
  t.comment(`\n${table.join('\n')}`);

  const { body } = await server.get('/v1/usage?by=model');
  const { data, total } = body as Report;
  t.equal(total.cost, textOf(sum), 'the report has what was charged');
  t.match(data, [{ model: 'fast', unpriced_calls: 0, estimated_calls: 0 }]);
  t.equal(data.length, 1, 'an attempt without an answer is not a call');
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

t.test('OB-11 50 clients at the same time exceed a budget by at most one call each', async (t) => {
  const budget = '    budgets: [{ amount: 0.5, per: day }]\n';
  const server = await TestServer.start(t, YAML + budget);
  server.models.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool'
      ? { text: 'Noon.', usage: USAGE }
      : { toolCalls: [{ name: 'clock', arguments: {} }], usage: USAGE },
  );
  const ends: Record<string, number> = {};
  const client = async () => {
    for (;;) {
      const { status, body } = await server.chat({ model: 'clerk', messages: [{ role: 'user', content: 'What time is it?' }] });
      const end = status === 200 ? (body as { choices: [{ finish_reason: string }] }).choices[0].finish_reason : String(status);
      ends[end] = (ends[end] ?? 0) + 1;
      if (status !== 200) return;
    }
  };
  await Promise.all(Array.from({ length: 50 }, client));
  const { total, budgets } = (await server.get('/v1/usage')).body as Report;
  t.comment(`amount 0.5, spent ${budgets[0]?.spent}, ${total.calls} calls, turns: ${JSON.stringify(ends)}`);
  t.equal(total.calls, server.models.requests.length);
  t.equal(ends['429'], 50);
  const spent = parseMoney(String(budgets[0]?.spent));
  t.ok(spent >= parseMoney('0.5') && spent <= parseMoney('0.5') + 50n * parseMoney(CALL));
});
