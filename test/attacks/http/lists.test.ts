import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Test } from 'tap';
import t from 'tap';
import { ServerProcess } from '../support/server-process.js';

const MIB = 1024 * 1024;
const READERS = 40;

const YAML = `
transports:
  http: { port: 0 }
  conversations: {}
  health: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

interface Listed {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
}

/** Creates a conversation of 20 items of 900 KB each. @returns the path of its items. */
async function largeConversation(server: ServerProcess): Promise<string> {
  const items = Array.from({ length: 20 }, () => ({ type: 'message', role: 'user', content: 'x'.repeat(900_000) }));
  const { status, text } = await server.request('/v1/conversations', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent: 'assistant', items }),
  });
  if (status !== 200) throw new Error(`${status}: ${text.slice(0, 200)}`);
  return `/v1/conversations/${JSON.parse(text).id}/items`;
}

/** Requests a path, reads the head of the reply and then nothing more. */
async function stalledReader(t: Test, server: ServerProcess, path: string): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await once(socket, 'readable');
  socket.read(1);
  return socket;
}

t.test('S-38 readers that stall on lists of large items hold a page each', async (t) => {
  const server = await ServerProcess.start(t, { yaml: YAML });
  const path = await largeConversation(server);
  await server.request(path); // as warm as it gets with one reader
  const before = server.memory();
  await Promise.all(Array.from({ length: READERS }, () => stalledReader(t, server, `${path}?limit=100`)));
  const growth = server.memory() - before;
  t.comment(`${READERS} stalled readers: +${growth.toFixed(0)} MiB resident`);
  // Without pages it was 736 MiB. Garbage that is not collected yet counts, too.
  t.ok(growth < 8 * READERS, `+${growth.toFixed(0)} MiB`);
  t.ok(await server.isHealthy());
});

t.test('S-38 pages are limited by bytes, and together they hold every item once', async (t) => {
  const server = await ServerProcess.start(t, {
    yaml: YAML.replace('conversations: {}', 'conversations: { maxPageBytes: 2mb }'),
  });
  const path = await largeConversation(server);
  const found: string[] = [];
  for (let hasMore = true; hasMore; ) {
    const { status, text } = await server.request(`${path}?limit=100${found.length > 0 ? `&after=${found.at(-1)}` : ''}`);
    t.equal(status, 200);
    t.ok(text.length < 2 * MIB, `a page of ${text.length} bytes`);
    const page = JSON.parse(text) as Listed;
    t.equal(page.data.length, 2);
    found.push(...page.data.map(({ id }) => id));
    hasMore = page.has_more;
  }
  t.equal(new Set(found).size, 20);
});
