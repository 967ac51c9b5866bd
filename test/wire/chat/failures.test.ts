import { createServer } from 'node:net';
import { ModelServer, type Script } from '@plugboard/testing';
import t from 'tap';
import { readEventStream } from '../../support/server-sent-events.js';
import { answerOf, errorOf, MODEL_KEY, type Reply, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

/** Throws where the user asks for it: before the turn, or when the model has begun to speak. */
const SABOTEUR = `
  import { definePlugin, Interceptors } from '@plugboard/kernel';
  export default definePlugin({
    name: 'saboteur', apiVersion: 1, summary: 'Breaks turns', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(Interceptors, async function* (turn, next) {
      const text = turn.messages.at(-1).content;
      if (text === 'a plugin throws') throw new Error('secret of the plugin');
      for await (const batch of next(turn)) {
        const breaks = /throws later|stops early/.test(text) && batch.some(({ type }) => type === 'text');
        yield breaks ? batch.filter(({ type }) => type !== 'finished') : batch;
        if (breaks && text === 'a plugin that throws later') throw new Error('secret of the plugin');
        if (breaks) return;
      }
    }),
  });
`;

/** Speaks TCP, and nothing that one could call HTTP. */
const babbler = createServer((socket) => socket.on('error', () => {}).end('220 babble ESMTP\r\n'));
await new Promise<void>((resolve) => babbler.listen(0, '127.0.0.1', resolve));
t.teardown(() => babbler.close());
const babblePort = (babbler.address() as { port: number }).port;

const server = await TestServer.start(
  t,
  `${TRANSPORTS.replace('sse: {}', 'sse: { keepAlive: 10m }')}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
  impatient: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}", idleTimeout: 3s }
  nobody: { use: openai, baseUrl: "\${REFUSED_URL}", model: big-1 }
  babbler: { use: openai, baseUrl: "http://127.0.0.1:${babblePort}/v1", model: big-1 }
agents:
  assistant: { model: fast }
  hurried: { model: fast, timeout: 3s }
plugins:
  saboteur: { use: ./saboteur.mjs }
`,
  { files: { 'saboteur.mjs': SABOTEUR }, env: { REFUSED_URL: await ModelServer.refusedUrl() } },
);

const never = Promise.withResolvers<void>();
t.teardown(() => never.resolve());

const once = { 'x-should-retry': 'false' };
const event = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const json = (value: unknown): Script => ({ raw: [JSON.stringify(value)], contentType: 'application/json', headers: once });
const events = (...raw: string[]): Script => ({ raw, headers: once });

interface Mishap {
  /** What the model server does; nothing where it is not even asked. */
  readonly script?: Script;
  readonly model?: string;
  /** The caller's message, besides that the turn failed. */
  readonly says?: RegExp;
  /** How often the model server is asked for one turn. */
  readonly asked?: number;
}

/** What goes wrong before the model has said anything. */
const early: Readonly<Record<string, Mishap>> = {
  'the model server refuses the connection': { model: 'nobody', says: /refused the connection/, asked: 0 },
  'the model server does not send HTTP': { model: 'babbler', says: /HTTP/, asked: 0 },
  'the model server closes the connection': { script: { hangUp: true }, says: /closed the connection/, asked: 3 },
  'the model server stalls before its answer': {
    model: 'impatient',
    script: { before: never.promise },
    says: /sent nothing for 3s/,
  },
  'the model server stalls after the response head': {
    model: 'impatient',
    script: { raw: [never.promise] },
    says: /sent nothing for 3s/,
  },
  'a 400': { script: { status: 400 }, says: /400/ },
  'a 400 for a context that is too long': {
    script: { status: 400, body: { error: { message: 'maximum context length is 8 tokens', code: 'context_length_exceeded' } } },
    says: /maximum context length is 8 tokens/,
  },
  'a 401 that repeats the API key': {
    script: { status: 401, body: { error: { message: `Incorrect API key provided: ${MODEL_KEY}` } } },
    says: /credentials/,
  },
  'a 404': { script: { status: 404, body: 'no such page' }, says: /404/ },
  'a 429 with a wait of an hour': { script: { status: 429, retryAfter: 3600 }, says: /429.*3600 s/ },
  'a 500 again and again': { script: { status: 500 }, says: /500/, asked: 3 },
  'a 503 with a page of HTML': { script: { status: 503, body: '<html><h1>Down</h1></html>', headers: once }, says: /503/ },
  'a redirect': { script: { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, says: /302/ },
  'an HTML page instead of an answer': {
    script: { raw: ['<!doctype html><html><body>Welcome to nginx!</body></html>'], contentType: 'text/html' },
  },
  'plain text': { script: { raw: ['OK'], contentType: 'text/plain' } },
  'JSON null': { script: json(null) },
  'a JSON list': { script: json([]) },
  'an empty JSON object': { script: json({}) },
  'choices of the wrong type': { script: json({ choices: 'many' }) },
  'an empty list of choices': { script: json({ choices: [] }) },
  'an error instead of an answer': { script: json({ error: { message: 'no luck', code: 400 } }), says: /no luck/ },
  'a truncated JSON body': {
    script: { raw: ['{"choices":[{"mess'], contentType: 'application/json', ending: 'cut' },
    asked: 3,
  },
  'a stream of nothing': { script: { raw: [], ending: 'clean' }, asked: 3 },
  'a stream of [DONE] alone': { script: events('data: [DONE]\n\n'), asked: 3 },
  'a stream of comments': { script: events(': hello\n\n', ': hello\n\n'), asked: 3 },
  'a stream of garbage': { script: events('data: {"choices":[{\n\n') },
  'a stream of another protocol': { script: events('event: message_start\ndata: "hello"\n\n') },
  'an error frame at once': {
    script: events('data: {"error":{"message":"overheated","type":"server_error","code":400}}\n\n'),
    says: /overheated/,
  },
  'an event of 17 MiB': { script: events(`data: {"x":"${'x'.repeat(17 * 2 ** 20)}"}\n\n`), says: /more than 16 MiB/ },
  'a plugin throws': { asked: 0, says: /internal error/ },
  'a turn beyond its time limit': { model: 'hurried', script: { before: never.promise }, says: /did not finish within 3 s/ },
};

const half = event({ role: 'assistant', content: 'Half' });

/** What goes wrong when the model has said "Half". */
const late: Readonly<Record<string, Mishap>> = {
  'the socket is cut': { script: { text: ['Half', ' of it'], cut: { afterEvents: 2 } }, says: /closed the connection/ },
  'a clean end without a finish reason': { script: events(half), says: /cut off/ },
  'an error frame in the middle': {
    script: events(half, 'data: {"error":{"message":"overheated"}}\n\n', 'data: [DONE]\n\n'),
    says: /overheated/,
  },
  'garbage in the middle': { script: events(half, 'data: {"choices":[{"delta":{"content":"of\n\n') },
  'a page of HTML in the middle': { script: events(half, '<html>\n\n', 'data: <h1>502</h1>\n\n') },
  'a stall in the middle': { model: 'impatient', script: { raw: [half, never.promise] }, says: /sent nothing for 3s/ },
  'a plugin that throws later': { script: { text: 'Half' }, says: /internal error/ },
  'a plugin stops early': { script: { text: 'Half' }, says: /internal error/ },
  'a time limit in the middle': { model: 'hurried', script: { raw: [half, never.promise] }, says: /did not finish/ },
};

server.models.respond(({ body }) => {
  const text = String(body.messages.findLast(({ role }) => role === 'user')?.content);
  return early[text]?.script ?? late[text]?.script ?? { text };
});

/** All mishaps at once, so that those for which the kernel waits and tries again do not add up. */
async function meet(mishaps: Readonly<Record<string, Mishap>>) {
  const met = Object.entries(mishaps).map(async ([name, { model = 'assistant' }]) => {
    const [whole, streamed] = await Promise.all([
      server.chat(saying(name, { model })),
      server.chat(saying(name, { model, stream: true })),
    ]);
    return [name, { whole, streamed }] as const;
  });
  return Object.fromEntries(await Promise.all(met));
}

/** Nothing of the inside may show. */
const INSIDE = new RegExp(
  [MODEL_KEY, '127\\.0\\.0\\.1', 'localhost', ':\\d{4,5}', '\\bat .*:\\d+', 'node_modules', 'secret of', '\\/v1\\/chat'].join(
    '|',
  ),
);

const metEarly = await meet(early);
const metLate = await meet(late);
for (const [name, mishap] of Object.entries(early)) {
  t.test(`C-107 C-165 C-167 C-168 R-052 ${name}: 502 in JSON, streamed or not`, async (t) => {
    for (const reply of Object.values(metEarly[name] as { whole: Reply; streamed: Reply })) {
      t.equal(reply.status, 502);
      t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
      const { message } = errorOf(reply);
      t.strictSame(reply.body, { error: { message, type: 'svc_error' } });
      t.match(message, mishap.says ?? /^The model connection failed: ./);
      t.notMatch(reply.text, INSIDE);
    }
    const asked = server.models.requests.filter(({ body }) => body.messages.some(({ content }) => content === name));
    t.equal(asked.length, 2 * (mishap.asked ?? 1), 'the model server is asked again only where that may help');
  });
}

for (const [name, { says }] of Object.entries(late)) {
  t.test(`C-108 C-109 C-167 C-168 R-037 ${name}: one error frame and [DONE], or a 502 for a whole answer`, async (t) => {
    const { whole, streamed } = metLate[name] as { whole: Reply; streamed: Reply };
    t.equal(whole.status, 502);
    t.strictSame(Object.keys(errorOf(whole)), ['message', 'type']);

    t.equal(streamed.status, 200);
    const { chunks, errors, done, text } = readEventStream(streamed.text);
    t.equal(text, 'Half');
    t.equal(errors.length, 1);
    const [error] = errors as [{ message: string }];
    t.strictSame(error, { message: error.message, type: 'svc_error' });
    t.match(error.message, says ?? /^The model connection failed: ./);
    t.ok(done);
    t.match(streamed.text, /data: \{"error":\{[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/, 'in a separate frame, the last before [DONE]');
    t.ok(
      chunks.every(({ choices }) => choices[0]?.finish_reason === null),
      'nothing that looks like success',
    );
    t.notMatch(whole.text + error.message, INSIDE);
    const asked = server.models.requests.filter(
      ({ body }) => body.stream && body.messages.some(({ content }) => content === name),
    );
    t.equal(asked.length, 1, 'what was streamed is not asked for again');
  });
}

t.test('after all of these failures the server is healthy', async (t) => {
  t.match((await server.get('/health')).body, { ready: true });
  t.equal(answerOf(await server.chat(saying('Still there?'))), 'Still there?');
  t.equal((await server.stream(saying('Still there?'))).text, 'Still there?');
  t.strictSame(
    server.started.logs.filter(({ level, msg }) => level === 'fatal' || (level === 'error' && msg !== 'a turn crashed')),
    [],
  );
  const crashes = server.started.logs.filter(({ msg }) => msg === 'a turn crashed');
  t.match(
    crashes.find(({ err }) => (err as Error).message.startsWith('secret')),
    { request_id: /^req_/ },
    'the log has the reason',
  );
});
