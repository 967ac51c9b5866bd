import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Message } from '@plugboard/kernel';
import { conversationId } from '@plugboard/kernel/contracts';
import type { Test } from 'tap';
import t from 'tap';
import { openStore } from '../../../plugins/store-sqlite/test/open-store.js';
import { ServerProcess } from '../support/server-process.js';

const yaml = (store: string) => `
transports:
  http: { port: 0 }
  chat-completions: {}
  conversations: {}
  health: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast }
sessions: ${store}
log: { level: warn }
`;

const LONG = { project: 'default', agent: 'assistant', key: 'long' };
const MESSAGES = 10_000;
const FORKS = 20;

/** A SQLite file with a session of 10,000 messages of one kilobyte. */
async function fileWithLongSession(t: Test): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const { store, path, close } = openStore(folder);
  const content = 'x'.repeat(1_000);
  const turn: readonly Message[] = [
    { role: 'user', content },
    { role: 'assistant', content },
  ];
  await Promise.all(Array.from({ length: MESSAGES / 2 }, (_, n) => store.commit(LONG, { expected: n, messages: turn })));
  close();
  return path;
}

async function post(server: ServerProcess, path: string, body: object) {
  const { status, text, headers } = await server.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status, headers, body: JSON.parse(text) };
}

const forkOf = (server: ServerProcess, key: string, id: string) =>
  post(server, `/v1/conversations/${conversationId({ ...LONG, key })}/fork`, { id });

const chat = (server: ServerProcess, session_id: string) =>
  post(server, '/v1/chat/completions', { model: 'assistant', session_id, messages: [{ role: 'user', content: 'hi' }] });

t.test('S-39 forks of a long session do not hold up other requests, or its memory', async (t) => {
  const path = await fileWithLongSession(t);
  const server = await ServerProcess.start(t, { yaml: yaml(`{ use: sqlite, path: ${JSON.stringify(path)} }`) });
  for (let n = 0; n < 20; n++) await server.isHealthy();
  const before = server.memory();
  let isForking = true;
  const delays: number[] = [];
  const probe = (async () => {
    while (isForking) {
      const start = performance.now();
      await server.isHealthy();
      delays.push(performance.now() - start);
      await wait(1);
    }
  })();
  const started = performance.now();
  const replies = await Promise.all(Array.from({ length: FORKS }, (_, n) => forkOf(server, 'long', `copy ${n}`)));
  const seconds = (performance.now() - started) / 1000;
  isForking = false;
  await probe;
  for (const { status, body } of replies) t.match({ status, turns: body.turns }, { status: 200, turns: MESSAGES / 2 });
  delays.sort((a, b) => b - a);
  const growth = server.memory() - before;
  const [longest = 0] = delays;
  t.comment(
    `${FORKS} forks in ${seconds.toFixed(1)} s: health answered ${delays.length} times, after at most ${longest.toFixed(0)} ms`,
  );
  t.comment(`resident +${growth.toFixed(0)} MiB`);
  t.ok(longest < 5_000, `${longest.toFixed(0)} ms`);
  t.ok(growth < 200, `+${growth.toFixed(0)} MiB`);
});

t.test('S-39 a project at its number of sessions gets a 507 that names the setting, until it deletes some', async (t) => {
  const server = await ServerProcess.start(t, { yaml: yaml('{ use: sqlite, path: ./sessions.db, maxSessionsPerProject: 3 }') });
  for (const key of ['one', 'two']) t.equal((await chat(server, key)).status, 200);
  t.equal((await forkOf(server, 'one', 'three')).status, 200);
  const asked = server.models.requests.length;
  const refusals = [
    await chat(server, 'four'),
    await forkOf(server, 'one', 'four'),
    await post(server, '/v1/conversations', { agent: 'assistant', id: 'four' }),
  ];
  for (const { status, headers, body } of refusals) {
    t.equal(status, 507);
    t.equal(headers.get('x-should-retry'), 'false');
    t.match(body.error, {
      code: 'quota_exceeded',
      message: /`maxSessionsPerProject` \(3\).+delete conversations, or raise the limit/,
    });
  }
  t.equal(server.models.requests.length, asked, 'refused before a model is asked');
  t.equal((await chat(server, 'two')).status, 200, 'sessions that exist go on');
  const { status } = await server.request(`/v1/conversations/${conversationId({ ...LONG, key: 'three' })}`, { method: 'DELETE' });
  t.equal(status, 200);
  t.equal((await chat(server, 'four')).status, 200);
});

t.test('S-39 a project at its bytes gets a 507 that names the setting', async (t) => {
  const server = await ServerProcess.start(t, { yaml: yaml('{ use: sqlite, path: ./sessions.db, maxBytesPerProject: 100kb }') });
  server.models.respond({ text: 'x'.repeat(60_000) });
  t.equal((await chat(server, 'one')).status, 200);
  const { status, body } = await forkOf(server, 'one', 'two');
  t.equal(status, 507);
  t.match(body.error.message, /`maxBytesPerProject` \(\d+\)/);
  t.equal((await chat(server, 'one')).status, 200, 'a turn that has begun is stored');
  t.match(await chat(server, 'one'), { status: 507, body: { error: { code: 'quota_exceeded' } } });
  const list = await server.request('/v1/conversations');
  t.equal(JSON.parse(list.text).data.length, 1, 'reading still works');
});
