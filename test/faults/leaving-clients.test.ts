/** Clients that leave in the middle: part of a normal day, and nothing for the log of errors. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { TestServer } from '../support/test-server.js';

const ROUTE = `
  import { definePlugin } from '@plugboard/kernel';
  import { HttpRoutes } from '@plugboard/transport-http';
  async function* forever(signal) {
    const left = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    for (;;) {
      yield 'x';
      await Promise.race([left, new Promise((resolve) => setTimeout(resolve, 5))]);
    }
  }
  export default definePlugin({
    name: 'endless', apiVersion: 1, summary: 'Streams', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const route = { method: 'GET', access: ['chat'], body: 'none', startsWork: false };
      const handle = ({ signal, note, dropBody }) => {
        dropBody();
        note({ taken: 'apart' });
        return { status: 200, body: forever(signal) };
      };
      ctx.contribute(HttpRoutes, { ...route, path: '/v1/endless', handle });
    },
  });
`;
const WAITING = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const run = (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const tool = { name: 'wait', description: 'Waits', inputSchema: { type: 'object', properties: {} }, run };
  export default definePlugin({
    name: 'waiting', apiVersion: 1, summary: 'Waits', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [tool] }),
  });
`;
const CONFIG = liveConfig('{}', '')
  .replace('  responses: {}', '  responses: {}\n  messages: {}\n  endless: { use: ./endless.mjs }')
  .concat(`
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  wait: { use: ./wait.mjs }
agents:
  assistant: { model: fast, tools: [wait] }
`);

const messages = [{ role: 'user', content: 'Go' }];
const REQUESTS: readonly (readonly [string, object?])[] = [
  ['/v1/endless'],
  ['/v1/chat/completions', { messages, stream: true }],
  ['/v1/chat/completions', { messages, stream: true, session_id: 's' }],
  ['/v1/responses', { input: 'Go', stream: true, store: false }],
  ['/v1/messages', { messages, stream: true, max_tokens: 100 }],
];

for (const how of ['destroy', 'resetAndDestroy'] as const)
  t.test(`a client that leaves a stream (${how}) is a line of the access log, and no other`, async (t) => {
    const app = await TestServer.start(t, CONFIG, { files: { 'endless.mjs': ROUTE, 'wait.mjs': WAITING } });
    for (const withTool of [false, true])
      for (const [path, body] of REQUESTS) {
        const before = app.accessLog.length;
        const never = Promise.withResolvers<void>().promise;
        app.models.respond(withTool ? { text: 'One', toolCalls: [{ name: 'wait', arguments: {} }] } : { text: ['One', never] });
        const socket = connect(app.port, '127.0.0.1');
        socket.on('error', () => {});
        const text = body ? JSON.stringify({ model: 'assistant', ...body }) : '';
        const head = ['host: 127.0.0.1', 'content-type: application/json', `content-length: ${text.length}`];
        socket.write(`${body ? 'POST' : 'GET'} ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${text}`);
        const [reply] = await once(socket, 'data');
        t.match(String(reply), /^HTTP\/1\.1 200/, path);
        socket[how]();
        await eventually(() => app.accessLog.length > before);
      }
    t.match(
      app.accessLog.filter(({ taken }) => taken === 'apart'),
      [{ outcome: 'cancelled_by_client' }, { outcome: 'cancelled_by_client' }],
    );
    await app.stop();
    const lines = app.started.logs.filter(({ level }) => level !== 'info' && level !== 'debug');
    t.strictSame(lines, []);
  });
