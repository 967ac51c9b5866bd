/**
 * Legal and nearly legal shapes that would make the work of a request grow faster than its bytes.
 * Each server is a process of its own with a small heap, and what is measured is how long its event
 * loop was held.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from '@plugboard/kernel';
import { conversationId } from '@plugboard/kernel/contracts';
import { systemClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { openStore } from '../../../plugins/store-sqlite/test/open-store.js';
import { TRANSPORTS } from '../../support/test-server.js';
import { LOOP_DELAY, LOOP_DELAY_FILES, longestDelay } from '../support/loop-delay.js';
import { ServerProcess } from '../support/server-process.js';

/**
 * Milliseconds for which a request may hold the event loop. Generous, because other tests run at
 * the same time; each request below held it until the watchdog ended the process.
 */
const HOLD_LIMIT = 5_000;

const TOOL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'shell', apiVersion: 1, summary: 'Runs', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: {} };
      const tools = [{ name: 'run', effect: 'write', description: 'Runs', inputSchema, run: () => 'done' }];
      ctx.contribute(ToolSources, { tools: () => tools });
    },
  });
`;

const YAML = `${TRANSPORTS}
  messages: {}
  responses: {}
  conversations: {}
sessions: { use: sqlite, path: "\${SESSIONS}" }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
  native: { use: ai-sdk, provider: "@ai-sdk/anthropic", baseUrl: "\${MODEL_URL}", model: claude-1, apiKey: "\${MODEL_KEY}" }
tools: { shell: { use: ./shell.mjs } }
agents:
  assistant: { model: fast, tools: [shell], approve: write, clientTools: passthrough }
  claude: { model: native, clientTools: passthrough }
${LOOP_DELAY}`;

const list = <T>(length: number, make: (at: number) => T) => Array.from({ length }, (_, at) => make(at));
const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'f', arguments: '{}' } });

/** A session of an older server, whose only turn has 24,000 calls. */
const OLD = { project: 'default', agent: 'assistant', key: 'old' };

async function sessionsOfOldServer(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { store, path } = openStore(folder, { clock: systemClock });
  const calls = list(24_000, (at) => call(`call_${at}`));
  const messages: Message[] = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: calls },
    ...calls.map(({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'ok' })),
  ];
  const kept = calls.slice(0, 1_000).map(({ id }) => ({ id, name: 'f', step: 1, start: 0, state: 'completed' }));
  const record = JSON.stringify({ queued: 0, duration: 0, reason: 'stop', steps: [], calls: kept });
  await store.commit(OLD, { expected: 0, messages, record });
  await store.stop();
  return path;
}

const server = await ServerProcess.start(t, {
  yaml: YAML,
  files: { ...LOOP_DELAY_FILES, 'shell.mjs': TOOL },
  env: { SESSIONS: await sessionsOfOldServer() },
  heap: 256,
});

const words = (length: number) => 'word '.repeat(length / 5);

/** Sends a request and checks that nobody waited for it. */
async function send(t: Test, what: string, path: string, body?: object) {
  await longestDelay(server);
  const text = body && JSON.stringify(body);
  const reply = await server.request(path, {
    ...(text && { method: 'POST', body: text }),
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
  });
  const held = Math.round(await longestDelay(server));
  t.comment(`${what}: ${text?.length ?? 0} bytes, held ${held} ms, ${Math.round(server.memory())} MiB, ${reply.status}`);
  t.ok(held < HOLD_LIMIT, `${what}: held ${held} ms`);
  return reply;
}

const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
const useResult = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' });

t.test('S-63 one long message before many steps is hashed once', async (t) => {
  const steps = list(5_000, (at) => [
    { role: 'assistant', content: [use(`toolu_${at}`)] },
    { role: 'user', content: [useResult(`toolu_${at}`)] },
  ]).flat();
  const messages = [{ role: 'user', content: words(1_300_000) }, ...steps];
  const { status } = await send(t, 'messages', '/v1/messages', { model: 'assistant', max_tokens: 100, messages });
  t.equal(status, 200);
});

t.test('S-64 calls of a message are limited, in every dialect', async (t) => {
  const ids = list(9_000, (at) => `call_${at}`);
  const chat = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: ids.map(call) },
    { role: 'user', content: 'And?' },
  ];
  const items = ids.flatMap((id) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }));
  const results = ids.map((id) => ({ type: 'function_call_output', call_id: id, output: words(1_400) }));
  const user = { type: 'message', role: 'user', content: 'Hi' };
  const requests = {
    'chat completions': ['/v1/chat/completions', { model: 'claude', messages: chat }],
    responses: [
      '/v1/responses',
      { model: 'claude', input: [user, ...items, ...ids.map((id) => ({ ...results[0], call_id: id, output: 'ok' }))] },
    ],
    input_tokens: ['/v1/responses/input_tokens', { model: 'claude', input: [user, ...items, ...results] }],
    messages: [
      '/v1/messages',
      {
        model: 'claude',
        max_tokens: 100,
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: ids.map(use) },
          { role: 'user', content: ids.map(useResult) },
        ],
      },
    ],
  } as const;
  for (const [what, [path, body]] of Object.entries(requests)) {
    const { status, text } = await send(t, what, path, body);
    t.equal(status, 400, what);
    t.match(text, /1,024/, what);
  }
});

t.test('S-64 a stored turn with more calls, which an older server kept, is shown', async (t) => {
  const id = conversationId(OLD);
  for (const path of ['items?order=asc&limit=100', 'items?order=desc&limit=1', 'turns?limit=1']) {
    const { status } = await send(t, path, `/v1/conversations/${id}/${path}`);
    t.equal(status, 200);
  }
});

t.test('S-65 a line that is no decision is not searched for one', async (t) => {
  server.models.enqueue({ toolCalls: [{ id: 'call_a', name: 'shell__run', arguments: {} }] });
  const say = (what: string, content: string) =>
    send(t, what, '/v1/chat/completions', { model: 'assistant', session_id: 'asked', messages: [{ role: 'user', content }] });
  const { text } = await say('a request', 'Run it');
  t.match(text, /needs approval/);
  const { status } = await say('a decision with spaces', `deny ABCDEF because${' '.repeat(8_000)}x\u2028y`);
  t.equal(status, 200);
  const lines = await say('many lines', 'approve ABCDEF\n'.repeat(100_000));
  t.equal(lines.status, 200);
});

t.test('the server is still the same process', async (t) => {
  t.ok(await server.isHealthy());
  t.comment(`peak ${Math.round(server.peakMemory())} MiB`);
});
