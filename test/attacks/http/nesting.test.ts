import { createHook } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { RawClient, replyOf } from '../../../plugins/transport-http/test/support/raw-client.js';
import { answerOf, saying, type TestServer } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { startWithAllRoutes, TOKEN } from '../support/all-routes.js';
import { everyRoute } from '../support/every-route.js';

// Where a hook was set, a stack that overflowed used to end the process whatever was caught
// (CVE-2025-59466).
const hook = createHook({ init() {} }).enable();
t.teardown(() => hook.disable());

const DEPTH = 100_000;
const arrays = '['.repeat(DEPTH) + ']'.repeat(DEPTH);
const objects = `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`;
const unclosed = '[{"a":'.repeat(DEPTH);

/**
 * An MCP server, in one file and without a library, that answers each call with what is nested too
 * deep to be written again.
 */
const DEEP_SERVER = `
  const deep = '['.repeat(${DEPTH}) + ']'.repeat(${DEPTH});
  const answers = {
    initialize: '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deep","version":"1"}}',
    'tools/list': '{"tools":[' + ['structured', 'block', 'text'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })).join() + ']}',
    structured: '{"content":[],"structuredContent":{"deep":' + deep + '}}',
    block: '{"content":[{"type":"odd","deep":' + deep + '}]}',
    text: '{"content":[{"type":"text","text":"' + deep + '"}]}',
  };
  let rest = '';
  process.stdin.on('data', (data) => {
    const lines = (rest + data).split('\\n');
    rest = lines.pop();
    for (const line of lines) {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) continue;
      const result = answers[method === 'tools/call' ? params.name : method] ?? '{}';
      process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}\\n');
    }
  });
`;

const MORE = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools:
  clock: {}
  deep: { use: mcp, command: "\${NODE}", args: [./deep.mjs], resultLimit: 1mb }
agents:
  assistant: { model: fast, tools: [clock, "deep/*"] }
`;

const server = await startWithAllRoutes(t, { more: MORE, files: { 'deep.mjs': DEEP_SERVER }, env: { NODE: process.execPath } });

async function assertLives(t: Test, { logs }: TestServer['started'] = server.started): Promise<void> {
  t.equal(answerOf(await server.chat(saying('Still there?'), bearer(TOKEN))), 'Still there?');
  t.strictSame(
    logs.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
}

t.test('S-24 a body nested 100,000 levels deep gets a 400 on every route with a body, and the server survives', async (t) => {
  const messages = '"messages":[{"role":"user","content":"Hi"}]';
  const bodies = [
    arrays,
    objects,
    unclosed,
    `{"model":"assistant",${messages},"x":${arrays}}`,
    `{"model":"assistant",${messages},"metadata":${objects}}`,
    `{"model":"assistant",${messages},"tools":[{"type":"function","function":{"name":"f","parameters":${objects}}}]}`,
    `{"model":"assistant","messages":[{"role":"user","content":${arrays}}]}`,
    `{"agent":"assistant","items":${arrays},"metadata":{}}`,
  ];
  for (const { route, method, path } of everyRoute(server).filter(({ takesJson }) => takesJson)) {
    for (const body of bodies) {
      const headers = { ...bearer(TOKEN), 'content-type': 'application/json' };
      const reply = await fetch(server.url + path, { method, headers, body });
      t.match(
        { status: reply.status, body: await reply.json() },
        { status: 400, body: { error: { type: 'invalid_request_error' } } },
        route,
      );
    }
  }
  await assertLives(t);
});

t.test('S-24 brackets inside strings do not count as nesting', async (t) => {
  const reply = await server.chat(saying(arrays), bearer(TOKEN));
  t.equal(reply.status, 200);
  t.equal(answerOf(reply), arrays);
});

t.test('S-24 deeply nested tool arguments of a model are refused, and the turn continues', async (t) => {
  for (const text of [`{"timeZone":${arrays}}`, `{"timeZone":${objects}}`, arrays, unclosed]) {
    for (const name of ['clock', 'deep__text']) {
      server.models.enqueue({ toolCalls: [{ name, arguments: text }] }, { text: 'Well.' });
      const reply = await server.chat(saying('Hi', { session_id: 'deep' }), bearer(TOKEN));
      t.equal(reply.status, 200, name);
      t.equal(answerOf(reply), 'Well.');
      t.match(server.asked.messages.at(-1), {
        role: 'tool',
        content: /^The (arguments (are not a valid|do not match|could not)|tool failed: the arguments are nested)/,
      });
    }
  }
  await assertLives(t);
});

t.test('S-24 deeply nested tool results do not crash the server', async (t) => {
  for (const [name, expected] of [
    ['structured', /nested too deep/],
    ['block', /odd/],
    ['text', arrays],
  ] as const) {
    server.models.enqueue({ toolCalls: [{ name: `deep__${name}`, arguments: {} }] }, { text: 'Well.' });
    const reply = await server.chat(saying('Hi', { session_id: 'deep-results' }), bearer(TOKEN));
    t.equal(reply.status, 200, name);
    t.match(server.asked.messages.at(-1), { role: 'tool', content: expected }, name);
  }
  await assertLives(t);
});

t.test('S-24 deeply nested answers of a model server do not crash the server', async (t) => {
  const chunk = `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null,"deep":${arrays}}]}\n\n`;
  for (const raw of [
    [chunk, 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'],
    [`data: ${arrays}\n\n`],
  ]) {
    for (const stream of [true, false]) {
      server.models.respond({ raw });
      const { status } = await server.chat(saying('Hi', { stream }), bearer(TOKEN));
      t.ok([200, 502].includes(status), String(status));
    }
  }
  for (const body of [arrays, `{"error":{"message":${arrays}}}`, `{"error":${objects}}`]) {
    server.models.respond({ status: 400, body });
    t.equal((await server.chat(saying('Hi'), bearer(TOKEN))).status, 502);
  }
  server.models.respond(({ body }) => ({ text: String(body.messages.at(-1)?.content) }));
  await assertLives(t);
});

t.test('S-24 the HTTP/2 preface is a bad request, an upgrade to it is ignored, and the server survives', async (t) => {
  const preface = await RawClient.open(server.port);
  preface.send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
  t.equal(replyOf(await preface.ended()).status, 400);

  const upgrade = await RawClient.open(server.port);
  upgrade.send(
    'GET /health HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade, HTTP2-Settings, close',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    '',
    '',
  );
  const received = await upgrade.ended();
  t.match(received, /^HTTP\/1\.1 200 OK\r\n/);
  t.notMatch(received, /101 Switching/);
  await assertLives(t);
});

t.test('S-24 Node.js is pinned to one release of version 24, which runs this test', async (t) => {
  const root = join(import.meta.dirname, '../../..');
  const pinned = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies.node;
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  t.match(pinned, /^24\.\d+\.\d+$/);
  t.equal(packages['node_modules/node'].version, pinned);
  t.equal(process.versions.node, pinned);
});
