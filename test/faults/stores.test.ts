import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { SqliteStore } from '../../plugins/store-sqlite/src/sqlite-store.js';
import { ASSISTANT, answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const CONVERSATIONS = '  conversations: {}\n';

function saidTo(server: TestServer): readonly unknown[] {
  return server.asked.messages.map(({ content }) => content);
}

t.test('the memory store does not evict a session while its turn runs', async (t) => {
  const server = await TestServer.start(t, `${TRANSPORTS}sessions: { use: memory, maxSessions: 1 }\n${ASSISTANT}`);
  server.models.enqueue({ text: 'one' });
  await server.chat(saying('first', { session_id: 'a' }));

  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ before: gate.promise, text: 'two' }, { text: 'other' });
  const running = server.chat(saying('second', { session_id: 'a' }));
  await eventually(() => server.models.requests.length >= 2);
  t.equal((await server.chat(saying('hello', { session_id: 'b' }))).status, 200);
  gate.resolve();
  const reply = await running;
  t.equal(reply.status, 200, reply.text);

  server.models.enqueue({ text: 'three' });
  await server.chat(saying('third', { session_id: 'a' }));
  t.same(saidTo(server), ['You are the assistant.', 'first', 'one', 'second', 'two', 'third']);
  t.match(
    server.started.logs.filter(({ msg }) => /^evicted a session/.test(String(msg))),
    [{ limit: 'maxSessions', turns: 1 }],
    'the other session, once no turn runs',
  );
});

t.test('a session that is created again after its eviction starts without its old history', async (t) => {
  const server = await TestServer.start(
    t,
    `${TRANSPORTS}${CONVERSATIONS}sessions: { use: memory, maxSessions: 1 }\n${ASSISTANT}`,
  );
  server.models.enqueue({ text: 'noted' }, { text: 'hello' });
  await server.chat(saying('my secret', { session_id: 'a' }));
  await server.chat(saying('hi', { session_id: 'b' })); // evicts a
  const items = [{ type: 'message', role: 'user', content: 'a new start' }];
  const created = await server.request('POST', '/v1/conversations', {}, { agent: 'assistant', id: 'a', items });
  t.equal(created.status, 200, created.text);
  server.models.enqueue({ text: 'fine' });
  await server.chat(saying('go on', { session_id: 'a' }));
  t.notMatch(JSON.stringify(server.asked), 'my secret');
  t.match(saidTo(server), ['You are the assistant.', 'a new start', 'go on']);
});

const KEEP_INPUT = (path: string) => `
${TRANSPORTS}
sessions: { use: sqlite, path: ${JSON.stringify(path)} }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast, onRestart: keep-input }
`;

/**
 * A file of a process that died during a turn of each session; the last turn of `bad` was stored
 * before.
 */
async function interruptedSessions(t: Test): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'sessions.db');
  const log = { warn() {}, error() {}, info() {} } as never;
  const timer = { cancel() {}, refresh() {} };
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => timer } as never;
  const store = new SqliteStore({ path, ttl: 1e9, quotas: { maxSessions: 10, maxBytes: 1e6 }, clock, log });
  store.start();
  const id = (key: string) => ({ project: 'default', agent: 'assistant', key });
  await store.commit(id('bad'), {
    expected: 0,
    messages: [
      { role: 'user', content: 'earlier' },
      { role: 'assistant', content: 'answer' },
    ],
  });
  for (const key of ['bad', 'deep', 'good'])
    await store.begin(id(key), { turnId: `turn_${key}`, input: [{ role: 'user', content: `input of ${key}` }] });
  store.stop();
  return path;
}

t.test('a damaged row affects one session only, and the other interrupted inputs are kept', async (t) => {
  const path = await interruptedSessions(t);
  const database = new DatabaseSync(path);
  database.exec(`UPDATE message SET body = '{"role":"user","content' WHERE place = 0`);
  const nested = `[{"role":"user","content":[{"type":"text","text":"x","more":${'['.repeat(50_000)}${']'.repeat(50_000)}}]}]`;
  database.prepare("UPDATE turn SET input = ? WHERE key = 'deep'").run(nested);
  database.close();

  const server = await TestServer.start(t, KEEP_INPUT(path));
  t.match(
    server.started.logs.filter(({ level }) => level === 'error').map(({ msg, err }) => [msg, (err as Error).message]),
    [
      ['an interrupted turn cannot be read and is skipped', /the input of turn row \d+ .*nested/],
      ['could not store the input of an interrupted turn', /message 0 of turn 1 of session 1 is not JSON/],
    ],
  );
  server.models.enqueue({ text: 'yes' });
  t.equal((await server.chat(saying('and now?', { session_id: 'good' }))).status, 200);
  t.same(saidTo(server), ['input of good', 'The previous answer was interrupted.', 'and now?']);
  server.models.enqueue({ text: 'ok' });
  t.equal(answerOf(await server.chat(saying('hello', { session_id: 'deep' }))), 'ok', 'the session itself is not damaged');
  t.equal((await server.chat(saying('hello', { session_id: 'bad' }))).status, 502);
});

t.test('S-37 when memory is needed, the largest idle conversation is evicted first', async (t) => {
  const limit = 'limits: { memory: 256kb }\n';
  const server = await TestServer.start(
    t,
    `${TRANSPORTS}sessions: { use: sqlite, path: ${JSON.stringify(join(t.testdir(), 's.db'))} }\n${limit}${ASSISTANT}`,
  );
  const loads: string[] = [];
  const { load } = SqliteStore.prototype;
  SqliteStore.prototype.load = function (id) {
    loads.push(id.key);
    return load.call(this, id);
  };
  t.teardown(() => {
    SqliteStore.prototype.load = load;
  });
  const say = async (key: string, length: number) => {
    server.models.enqueue({ text: 'ok' });
    t.equal((await server.chat(saying('x'.repeat(length), { session_id: key }))).status, 200);
  };
  await say('large', 40_000);
  await say('small', 10_000);
  await say('medium', 30_000); // 80 kB count as 240 kB: the largest leaves
  loads.length = 0;
  for (const key of ['small', 'medium', 'large']) await say(key, 10);
  t.same(loads, ['large'], 'the others were still in memory');
  t.same(server.asked.messages.map(({ content }) => String(content).length).slice(1), [40_000, 2, 10], 'nothing is lost');
});
