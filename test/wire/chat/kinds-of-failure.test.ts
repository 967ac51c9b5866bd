import t from 'tap';
import { liveConfig } from '../../support/live.js';
import { LiveSocket } from '../../support/live-socket.js';
import { errorOf, saying, TestServer } from '../../support/test-server.js';

const HOUR = 3600;

const GUARD = `
import { definePlugin, Interceptors } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';

export default definePlugin({
  name: 'guard',
  apiVersion: 1,
  summary: 'Refuses turns',
  configSchema: { type: 'object', properties: {}, additionalProperties: false },
  register(ctx) {
    ctx.contribute(Interceptors, (turn, next) => {
      if (turn.agent === 'quota') throw new TurnError('rate_limited', 'That was enough for today.', { retryAfter: 40_000 });
      return next(turn);
    });
  },
});
`;

/** A connection that refuses every request by itself. */
const QUOTA = `
import { definePlugin, ModelConnectors, ModelError } from '@plugboard/kernel';

export default definePlugin({
  name: 'quota',
  apiVersion: 1,
  summary: 'Refuses every request',
  configSchema: { type: 'object', properties: { code: { type: 'string', description: 'The code.' } }, required: ['code'] },
  register(ctx) {
    ctx.contribute(ModelConnectors, {
      model: 'quota',
      contextWindow: 1000,
      input: ['text'],
      supportsParam: () => true,
      async *stream() {
        throw new ModelError('That was too much.', { code: ctx.config.code, retryAfter: 40_000, retryable: false });
      },
    });
  },
});
`;

/** What a model server says, and what callers then get. */
const KINDS = {
  'a context that is too long': {
    script: { status: 400, body: { error: { message: 'maximum context length is 8 tokens', code: 'context_length_exceeded' } } },
    status: 502,
    error: { type: 'svc_error', message: /maximum context length is 8 tokens/ },
    code: 'context_length_exceeded',
  },
  'content that is refused': {
    script: { status: 400, body: { error: { message: 'It was filtered.', code: 'content_filter' } } },
    status: 400,
    error: { type: 'invalid_request_error', code: 'content_policy_violation', message: /It was filtered/ },
  },
  'a request that is invalid': {
    script: { status: 400, body: { error: { message: 'Bad image.', type: 'invalid_request_error' } } },
    status: 502,
    error: { type: 'svc_error', message: /Bad image/ },
    code: 'invalid_request',
  },
  'a rate limit of an hour': {
    script: { status: 429, retryAfter: HOUR },
    status: 502,
    error: { type: 'svc_error', message: /429.*3600 s/ },
    code: 'rate_limit_exceeded',
    wait: HOUR,
  },
  'an overload for an hour': {
    script: { status: 529, retryAfter: HOUR },
    status: 502,
    error: { type: 'svc_error', message: /529/ },
    code: 'overloaded',
    wait: HOUR,
  },
  'a guard that refuses': {
    model: 'quota',
    script: {},
    status: 429,
    error: { type: 'requests', code: 'rate_limit_exceeded', message: 'That was enough for today.' },
    wait: 40_000,
  },
  'any other failure with a wait': {
    script: { status: 500, retryAfter: HOUR },
    status: 502,
    error: { type: 'svc_error', message: /500/ },
    wait: HOUR,
  },
} as const;

const AGENTS = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
  quota: { model: fast }
`;
const GUARDED = `${AGENTS}plugins: { guard: { use: ./guard.js } }\n`;

/** The last event of a stream of the Responses API. */
function lastEvent(stream: string): unknown {
  const data = stream.split('\n').filter((line) => line.startsWith('data: {'));
  return JSON.parse(data.at(-1)?.slice('data: '.length) ?? 'null');
}

t.test('C-175 C-176 each kind of failure has its status and its wait on every surface', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', GUARDED), { files: { 'guard.js': GUARD } });
  const socket = await LiveSocket.open(t, app);
  for (const [name, kind] of Object.entries(KINDS)) {
    app.models.respond(kind.script);
    const model = 'model' in kind ? kind.model : 'assistant';
    const wait = 'wait' in kind ? kind.wait : undefined;
    const chat = { ...saying('Hello'), model };
    const response = { model, input: 'Hello' };
    for (const [surface, reply] of Object.entries({
      chat: await app.chat(chat),
      'streamed chat': await app.chat({ ...chat, stream: true }),
      'chat in a session': await app.chat({ ...chat, session_id: name }),
      responses: await app.request('POST', '/v1/responses', {}, { ...response, store: false }),
    })) {
      t.equal(reply.status, kind.status, `${name}: ${surface}`);
      t.match(errorOf(reply), kind.error, `${name}: ${surface}`);
      t.equal(reply.headers.get('retry-after'), wait === undefined ? null : String(wait), `${name}: ${surface}`);
      if (wait !== undefined) t.equal(reply.headers.get('x-should-retry'), 'false', `${name}: ${surface}`);
    }
    // The head of a stream, or `response.created`, is sent when the turn begins. Then the event has
    // the code, whatever the status of a failure before the head.
    const code = 'code' in kind ? kind.code : 'code' in kind.error ? kind.error.code : 'model_failed';
    const { message } = kind.error;
    const streamed = await app.request('POST', '/v1/responses', {}, { ...response, stream: true });
    socket.create(response);
    const refused = (await socket.turn()).at(-1);
    if (model === 'quota') {
      t.equal(streamed.status, kind.status);
      t.match(refused, { type: 'error', status: kind.status, error: { ...kind.error, retry_after_ms: (wait ?? 0) * 1000 } });
    } else {
      t.match(lastEvent(streamed.text), { type: 'response.failed', response: { error: { code, message } } }, name);
      t.match(refused, { type: 'response.failed', response: { error: { code, message } } }, name);
    }
  }
});

t.test('C-175 C-176 what a connection itself decides has a status of its own', async (t) => {
  const codes = ['context_length_exceeded', 'content_filter', 'invalid_request', 'rate_limited', 'overloaded'];
  const models = codes.map((code) => `  ${code}: { use: ./quota.js, code: ${code} }`).join('\n');
  const agents = codes.map((code) => `  agent_${code}: { model: ${code} }`).join('\n');
  const app = await TestServer.start(t, liveConfig('{}', `models:\n${models}\nagents:\n${agents}\n`), {
    files: { 'quota.js': QUOTA },
  });
  for (const [code, status, type, shown] of [
    ['context_length_exceeded', 400, 'invalid_request_error', 'context_length_exceeded'],
    ['content_filter', 400, 'invalid_request_error', 'content_policy_violation'],
    ['invalid_request', 400, 'invalid_request_error', null],
    ['rate_limited', 429, 'requests', 'rate_limit_exceeded'],
    ['overloaded', 503, 'server_error', 'overloaded'],
  ] as const) {
    const model = `agent_${code}`;
    for (const reply of [
      await app.chat({ ...saying('Hello'), model }),
      await app.chat({ ...saying('Hello'), model, stream: true }),
      await app.request('POST', '/v1/responses', {}, { model, input: 'Hello', store: false }),
    ]) {
      t.equal(reply.status, status, code);
      t.match(errorOf(reply), { type, code: shown, message: /That was too much/ });
      const waits = status === 429 || status === 503;
      t.equal(reply.headers.get('retry-after'), waits ? '40000' : null, code);
      t.equal(reply.headers.get('x-should-retry'), waits ? 'false' : null, code);
    }
  }
});

t.test('C-175 a kind of failure after the head of a stream is an error frame with the same object', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', AGENTS));
  const half = `data: ${JSON.stringify({ choices: [{ delta: { role: 'assistant', content: 'Half' } }] })}\n\n`;
  app.models.respond({ raw: [half, 'data: {"error":{"message":"It was filtered.","code":"content_filter"}}\n\n'] });
  const { errors, text } = await app.stream(saying('Hello'));
  t.equal(text, 'Half');
  t.match(errors, [{ type: 'invalid_request_error', code: 'content_policy_violation', message: /It was filtered/ }]);
  const streamed = await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'Hello', stream: true });
  t.match(lastEvent(streamed.text), { response: { status: 'failed', error: { code: 'content_policy_violation' } } });
});
