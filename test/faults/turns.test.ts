import { setTimeout as delay } from 'node:timers/promises';
import { eventually, type Script } from '@plugboard/testing';
import t from 'tap';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const one = (fields = '') => `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast${fields} }
`;

/** A tool that ends 200 ms after it was aborted. */
const SLOW_TO_STOP = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  const tool = {
    name: 'slow', description: 'Waits', inputSchema: { type: 'object' }, effect: 'read',
    run: (_, { signal }) => new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        globalThis.slowToolAborted = (globalThis.slowToolAborted ?? 0) + 1;
        setTimeout(resolve, 200, 'stopped');
      });
    }),
  };
  export default definePlugin({
    name: 'slow', apiVersion: 1, summary: 'A tool that is slow to stop', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: async () => [tool] }),
  });
`;

t.test('a retry right after a disconnect waits for the cancelled turn and is answered', async (t) => {
  const yaml = `${one(', tools: [slow]')}tools: { slow: { use: ./slow.mjs } }\n`;
  const server = await TestServer.start(t, yaml, { files: { 'slow.mjs': SLOW_TO_STOP } });
  const aborted = () => (globalThis as { slowToolAborted?: number }).slowToolAborted ?? 0;
  server.models.enqueue({ toolCalls: [{ name: 'slow', arguments: {} }] }, { text: 'Whole' });
  const body = saying('Hi', { session_id: 's', stream: true });
  const first = await server.open(body);
  await first.until('data:');
  first.leave();
  await eventually(() => aborted() === 1);
  const reply = await server.stream(body);
  t.equal(reply.status, 200);
  t.equal(reply.text, 'Whole');
});

t.test('requests that the model server refuses do not make its connection count as failed', async (t) => {
  const yaml = `${TRANSPORTS}
models:
  first: { use: openai, baseUrl: "\${MODEL_URL}", model: first-1 }
  second: { use: openai, baseUrl: "\${MODEL_URL}", model: second-1 }
agents:
  assistant: { model: [first, second] }
`;
  const server = await TestServer.start(t, yaml);
  for (const status of [400, 413, 422]) {
    server.models.respond(({ body }) => (JSON.stringify(body).includes('poison') ? { status } : { text: String(body.model) }));
    for (let n = 0; n < 4; n++) await server.chat(saying('poison'));
    t.equal(answerOf(await server.chat(saying('Hi'))), 'first-1', `after four times ${status}`);
  }
  server.models.respond(({ body }) => (body.model === 'first-1' ? { status: 401 } : { text: String(body.model) }));
  for (let n = 0; n < 3; n++) await server.chat(saying('Hi'));
  const before = server.models.requests.length;
  await server.chat(saying('Hi'));
  t.equal(server.models.requests.length, before + 1, 'a connection whose key is refused is passed over');
});

t.test('a failed call of a model server is one short log line, with its cause once and without a stack', async (t) => {
  const server = await TestServer.start(t, one());
  const failures: readonly (readonly [Script, reason: RegExp])[] = [
    [{ status: 400, body: { error: { message: `no ${'x'.repeat(2000)}` } } }, /^the model server answered 400: no x+…/],
    [{ status: 401, body: { error: { message: 'unknown key' } } }, /did not accept the credentials.*\(cause: unknown key\)$/],
    [{ text: ['Hel', 'lo'], cut: { afterEvents: 2 } }, /closed the connection in the middle of its answer/],
  ];
  for (const [script, reason] of failures) {
    server.models.enqueue(script);
    const before = server.started.logs.length;
    await server.chat(saying('Hi', { stream: true }));
    const lines = server.started.logs.slice(before).filter((line) => 'connection' in line);
    t.match(lines, [{ level: 'warn', msg: 'a model connection failed', connection: 'fast', agent: 'assistant', reason }]);
    t.equal(lines.length, 1);
    const line = JSON.stringify(lines[0]);
    t.ok(line.length < 600, `${line.length} characters`);
    t.notMatch(line, /"stack"|\.ts:\d/);
    t.ok(line.split('unknown key').length <= 2, 'the cause comes once');
  }
});

t.test('with `onDisconnect: continue` a stateless turn with an idempotency key runs to its end without its caller', async (t) => {
  const server = await TestServer.start(t, one(', onDisconnect: continue'));
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Half', gate.promise, ' and whole'] });
  const key = { 'idempotency-key': 'k' };
  const body = saying('Hi', { stream: true });
  const first = await server.open(body, key);
  await server.models.received(1);
  first.leave();
  await delay(50);
  gate.resolve();
  await eventually(async () => (await server.stream(body, key)).status === 200);
  const again = await server.stream(body, key);
  t.equal(again.text, 'Half and whole');
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.equal(server.models.requests.length, 1);
});
