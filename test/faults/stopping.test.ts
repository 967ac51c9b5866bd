import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { ASSISTANT, TestServer, TRANSPORTS } from '../support/test-server.js';

/** A server whose sessions are in a file, and whose turns go on without their caller. */
const config = (path: string, limits = '') => `${TRANSPORTS}  responses: {}
  conversations: {}
sessions: { use: sqlite, path: ${JSON.stringify(path)} }
${ASSISTANT.replace('model: fast,', 'model: fast, onDisconnect: continue,')}${limits}`;

/** Starts a turn whose caller leaves while the model answers, and asks the server to stop. */
async function stopDuring(t: Test, path: string, body: object, limits?: string) {
  const file = join(t.testdir({}), 'sessions.db');
  const server = await TestServer.start(t, config(file, limits));
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Hel', gate.promise, 'lo.'] });
  const caller = new AbortController();
  const call = fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', ...body }),
    signal: caller.signal,
  });
  await eventually(() => server.models.requests.length === 1);
  caller.abort();
  await call.catch(() => {});
  await eventually(() => server.accessLog.length === 1);
  return { file, gate, stopped: server.stop() };
}

const TURNS = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hi' }], session_id: 's' },
  '/v1/responses': { input: 'Hi', conversation: 's' },
};

for (const [path, body] of Object.entries(TURNS)) {
  t.test(`R-060 a turn of ${path} whose caller has left is stored before the server stops`, async (t) => {
    const { file, gate, stopped } = await stopDuring(t, path, body);
    gate.resolve();
    await stopped;
    const next = await TestServer.start(t, config(file));
    const { body: list } = await next.get('/v1/conversations');
    t.match(list, { data: [{ turns: 1 }] });
  });
}

t.test('R-061 a turn that outlives `limits.drain` is ended, and the stop is not clean', async (t) => {
  const { file, stopped } = await stopDuring(
    t,
    '/v1/chat/completions',
    TURNS['/v1/chat/completions'],
    'limits: { drain: 100ms }\n',
  );
  await t.rejects(stopped, /1 turn was still running at the limit \(`limits\.drain`\)/);
  const next = await TestServer.start(t, config(file));
  t.match((await next.get('/v1/conversations')).body, { data: [] });
});
