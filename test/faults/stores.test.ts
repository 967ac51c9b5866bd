import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { eventually } from '@plugboard/kernel/testing';
import t, { type Test } from 'tap';
import { SqliteStore } from '../../plugins/store-sqlite/src/sqlite-store.js';
import { ASSISTANT, answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const CONVERSATIONS = '  conversations: {}\n';

function saidTo(app: TestServer): readonly unknown[] {
  return app.asked.messages.map(({ content }) => content);
}

t.test('the memory store does not evict a session while its turn runs', async (t) => {
  const app = await TestServer.start(t, `${TRANSPORTS}sessions: { use: memory, maxSessions: 1 }\n${ASSISTANT}`);
  app.models.enqueue({ text: 'one' });
  await app.chat(saying('first', { session_id: 'a' }));

  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ before: gate.promise, text: 'two' }, { text: 'other' });
  const running = app.chat(saying('second', { session_id: 'a' }));
  await eventually(() => app.models.requests.length >= 2);
  t.equal((await app.chat(saying('hello', { session_id: 'b' }))).status, 200);
  gate.resolve();
  const reply = await running;
  t.equal(reply.status, 200, reply.text);

  app.models.enqueue({ text: 'three' });
  await app.chat(saying('third', { session_id: 'a' }));
  t.same(saidTo(app), ['You are the assistant.', 'first', 'one', 'second', 'two', 'third']);
  t.match(
    app.started.logs.filter(({ msg }) => /^evicted a session/.test(String(msg))),
    [{ limit: 'maxSessions', turns: 1 }],
    'the other session, once no turn runs',
  );
});

t.test('a session that is created again after its eviction starts without its old history', async (t) => {
  const app = await TestServer.start(t, `${TRANSPORTS}${CONVERSATIONS}sessions: { use: memory, maxSessions: 1 }\n${ASSISTANT}`);
  app.models.enqueue({ text: 'noted' }, { text: 'hello' });
  await app.chat(saying('my secret', { session_id: 'a' }));
  await app.chat(saying('hi', { session_id: 'b' })); // evicts a
  const items = [{ type: 'message', role: 'user', content: 'a new start' }];
  const created = await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', id: 'a', items });
  t.equal(created.status, 200, created.text);
  app.models.enqueue({ text: 'fine' });
  await app.chat(saying('go on', { session_id: 'a' }));
  t.notMatch(JSON.stringify(app.asked), 'my secret');
  t.match(saidTo(app), ['You are the assistant.', 'a new start', 'go on']);
});

const KEEP_INPUT = (path: string) => `
${TRANSPORTS}
sessions: { use: sqlite, path: ${JSON.stringify(path)} }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast, onRestart: keep-input }
`;

/** A file of a process that died during a turn of each session; the last turn of `bad` was stored before. */
async function interruptedSessions(t: Test): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'sessions.db');
  const log = { warn() {}, error() {}, info() {} } as never;
  const timer = { cancel() {}, refresh() {} };
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => timer } as never;
  const store = new SqliteStore({ path, ttl: 1e9, clock, log });
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

  const app = await TestServer.start(t, KEEP_INPUT(path));
  t.match(
    app.started.logs.filter(({ level }) => level === 'error').map(({ msg, err }) => [msg, (err as Error).message]),
    [
      ['an interrupted turn cannot be read and is skipped', /the input of turn row \d+ .*nested/],
      ['could not store the input of an interrupted turn', /message 0 of turn 1 of session 1 is not JSON/],
    ],
  );
  app.models.enqueue({ text: 'yes' });
  t.equal((await app.chat(saying('and now?', { session_id: 'good' }))).status, 200);
  t.same(saidTo(app), ['input of good', 'The previous answer was interrupted.', 'and now?']);
  app.models.enqueue({ text: 'ok' });
  t.equal(answerOf(await app.chat(saying('hello', { session_id: 'deep' }))), 'ok', 'the session itself is not damaged');
  t.equal((await app.chat(saying('hello', { session_id: 'bad' }))).status, 502);
});

t.test('S-37 beyond the cache limit the largest idle conversation is evicted first', async (t) => {
  const limit = 'limits: { sessionCache: 64kb }\n';
  const app = await TestServer.start(
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
    app.models.enqueue({ text: 'ok' });
    t.equal((await app.chat(saying('x'.repeat(length), { session_id: key }))).status, 200);
  };
  await say('large', 40_000);
  await say('small', 10_000);
  await say('medium', 30_000); // 80 kB: the largest leaves
  loads.length = 0;
  for (const key of ['small', 'medium', 'large']) await say(key, 10);
  t.same(loads, ['large'], 'the others were still in memory');
  t.same(app.asked.messages.map(({ content }) => String(content).length).slice(1), [40_000, 2, 10], 'nothing is lost');
});
