import fc from 'fast-check';
import t from 'tap';
import { RawClient, replyOf } from '../../../plugins/transport-http/test/support/raw-client.js';
import { readEventStream } from '../../support/server-sent-events.js';
import { answerOf, type Reply, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

const server = await TestServer.start(
  t,
  `${TRANSPORTS.replace('port: 0', 'port: 0, headersTimeout: 2s, bodyTimeout: 2s')}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
defaultAgent: assistant
`,
);

/**
 * Whether it is an answer that this server may give: the protocol's error, or a run that went well.
 */
function isProper(reply: Reply): boolean {
  if (!/^req_[0-9a-f]{32}$/.test(reply.headers.get('x-request-id') ?? '')) return false;
  if (reply.status === 200) return ranWell(reply);
  return reply.status >= 400 && reply.status < 500 && isError(reply.headers.get('content-type'), reply.text);
}

function ranWell(reply: Reply): boolean {
  if (!reply.headers.get('content-type')?.startsWith('text/event-stream')) return typeof answerOf(reply) === 'string';
  const { done, errors, chunks } = readEventStream(reply.text);
  return done && errors.length === 0 && chunks.some(({ choices }) => choices[0]?.finish_reason === 'stop');
}

function isError(contentType: string | null | undefined, text: string): boolean {
  if (!contentType?.startsWith('application/json')) return false;
  const { error } = JSON.parse(text);
  return typeof error.message === 'string' && error.message !== '' && typeof error.type === 'string';
}

const wild = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom('', ' ', '\ud800', '\0', 'x'.repeat(600), 0, -1, 2 ** 53, 'auto', 'required', 'text'),
);
/** Mostly right, so that one fault is not hidden behind another, and many requests have none. */
const mostly = (right: fc.Arbitrary<unknown>) => fc.oneof({ weight: 49, arbitrary: right }, { weight: 1, arbitrary: wild });

const text = fc.string({ unit: 'binary', maxLength: 20 });
const part = fc.record({ type: mostly(fc.constantFrom('text')), text: mostly(text) });
const key = fc.constantFrom('ann', 'Größe', '😀', '', ' ');
const message = fc.record({
  role: mostly(fc.constantFrom('system', 'developer', 'user', 'user', 'assistant')),
  content: mostly(fc.oneof(text, fc.array(part, { maxLength: 3 }))),
});
const body = fc
  .tuple(
    fc.record(
      {
        stream: mostly(fc.boolean()),
        user: mostly(key),
        session_id: mostly(key),
        temperature: mostly(fc.float({ min: 0, max: 2, noNaN: true })),
        max_tokens: mostly(fc.integer({ min: 1, max: 2 ** 31 - 1 })),
        stop: mostly(fc.array(text, { minLength: 1, maxLength: 4 })),
        tools: mostly(fc.constant([{ type: 'function', function: { name: 'f' } }])),
        tool_choice: mostly(fc.constantFrom('auto', 'none')),
        metadata: mostly(fc.dictionary(text, text, { maxKeys: 3 })),
        stream_options: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, wild),
        response_format: mostly(fc.constant({ type: 'json_object' })),
        n: mostly(fc.constant(1)),
      },
      { requiredKeys: [] },
    ),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')), wild, { maxKeys: 2 }),
    mostly(fc.array(mostly(message), { minLength: 1, maxLength: 3 })),
    mostly(fc.constantFrom('assistant', 'fast', 'unknown')),
  )
  .map(([known, unknown, messages, model]) => JSON.stringify({ ...unknown, ...known, model, messages }));

t.test('R-091 C-006 any body gets a correct answer or a client error', async (t) => {
  let ran = 0;
  let refused = 0;
  const anything = fc.oneof(
    { weight: 16, arbitrary: body },
    { weight: 1, arbitrary: fc.json() },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
    { weight: 1, arbitrary: body.map((whole) => whole.slice(0, whole.length / 2)) },
    { weight: 1, arbitrary: fc.nat({ max: 200 }).map((depth) => `${'{"a":['.repeat(depth)}${']}'.repeat(depth)}`) },
  );
  await fc.assert(
    fc.asyncProperty(anything, async (sent) => {
      const reply = await server.chat(sent);
      if (reply.status === 200) ran++;
      else refused++;
      return isProper(reply);
    }),
    { numRuns: 600 },
  );
  t.ok(ran > 100 && refused > 100, `of either kind there were many: ${ran} ran, ${refused} were refused`);
});

const header = mostly(
  fc
    .tuple(
      fc.constantFrom('X-Session-Id', 'Accept', 'Authorization', 'Content-Encoding', 'Cookie', 'Expect', 'Host'),
      fc.constantFrom('', 'x', 'Bearer x', 'identity', '100-continue', '*/*', 'a=b; c="d"'),
    )
    .map(([name, value]) => `${name}: ${value}`),
);
const json = JSON.stringify(saying('Hi'));
/**
 * A request as bytes, right mostly. What comes is never less than its head says, so that it never
 * waits for more.
 */
const request = fc
  .record({
    method: mostly(
      fc.constantFrom('GET', 'POST', 'POST', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'BREW'),
    ),
    path: mostly(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom('/v1/chat/completions', '/v1/models', '/health') },
        fc.constantFrom('/v1/models/%ff', '//', '*', '/v1/chat/completions?a=1#b'),
        fc.webPath().map((path) => `/v1${path}`),
      ),
    ),
    version: mostly(fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0')),
    headers: fc.array(fc.oneof({ weight: 9, arbitrary: header }, fc.string({ unit: 'binary' })), { maxLength: 2 }),
    length: fc.constantFrom<(length: number) => string>(
      (length) => `Content-Length: ${length}`,
      (length) => `Content-Length: ${length}`,
      (length) => `Content-Length: ${length}`,
      (length) => `Content-Length: ${Math.max(0, length - 3)}`,
      () => 'Content-Length: -1',
      () => 'Transfer-Encoding: chunked',
      (length) => `Content-Length: ${length}\r\nTransfer-Encoding: chunked`,
      () => 'X: y',
    ),
    content: fc.constantFrom(json, json, json, '', '{', `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`),
  })
  .map(({ method, path, version, headers, length, content }) =>
    [
      `${method} ${path} ${version}`,
      'Connection: close',
      'Host: localhost',
      'Content-Type: application/json',
      ...headers,
      length(content.length),
      '',
      content,
    ].join('\r\n'),
  );

t.test('R-090 C-006 any bytes on a connection get complete HTTP responses, with JSON errors', async (t) => {
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(request, async (sent) => {
      const raw = await RawClient.open(server.port);
      raw.send(sent);
      const received = await raw.ended();
      const { status, headers, body } = replyOf(received.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, ''));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status < 400) return status === 200 || status === 204;
      const length = Number(headers['content-length']);
      return (
        status < 500 && (body === '' || isError(headers['content-type'], Buffer.from(body.slice(0, length), 'latin1').toString()))
      );
    }),
    { numRuns: 400 },
  );
  t.ok(
    [200, 400, 404, 405].every((status) => (statuses.get(status) ?? 0) > 0),
    `of every kind there were some: ${[...statuses]}`,
  );
});

t.test('after all of these requests the server is healthy and has logged no crash', async (t) => {
  t.match((await server.get('/health')).body, { ready: true });
  t.equal(answerOf(await server.chat(saying('Still there?'))), 'Still there?');
  t.strictSame(
    server.started.logs.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
});
