import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ModelServer, startServer } from '@plugboard/testing';
import plugin from '../src/index.ts';

const model = await ModelServer.start();
after(() => model.close());
const folder = await mkdtemp(join(tmpdir(), 'store-'));
after(() => rm(folder, { recursive: true }));
const server = await startServer({
  transports: { http: { port: 0 }, 'chat-completions': {} },
  models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
  agents: { helper: { model: 'fast' } },
  sessions: { use: plugin, path: join(folder, 'sessions.json') },
});
after(() => server.stop());

/** Asks the agent over HTTP. */
async function ask(url: string, content: string, more: object = {}, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'helper', messages: [{ role: 'user', content }], ...more }),
  });
}

test('keeps a conversation of a whole server', async () => {
  model.enqueue({ text: 'Hello, Anna.' }, { text: 'Anna.' });
  await (await ask(server.url, 'I am Anna', { session_id: 's' })).text();
  await (await ask(server.url, 'Who am I?', { session_id: 's' })).text();
  assert.deepEqual(
    model.requests[1]?.body.messages.map(({ content }) => content),
    ['I am Anna', 'Hello, Anna.', 'Who am I?'],
  );
});
