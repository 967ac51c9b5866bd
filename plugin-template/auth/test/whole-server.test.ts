import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ModelServer, startServer } from '@plugboard/testing';
import plugin from '../src/index.ts';

const model = await ModelServer.start();
after(() => model.close());
const server = await startServer({
  transports: { http: { port: 0 }, 'chat-completions': {} },
  models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
  agents: { helper: { model: 'fast' } },
  auth: { keys: { use: plugin, keys: [{ name: 'ci', key: 'key-of-the-tests' }] } },
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

test('lets callers with a key into a whole server, and no others', async () => {
  model.enqueue({ text: 'Hello.' });
  assert.equal((await ask(server.url, 'Hi')).status, 401);
  assert.equal((await ask(server.url, 'Hi', {}, { authorization: 'Bearer key-that-was-not-issued' })).status, 401);
  const reply = await ask(server.url, 'Hi', {}, { authorization: 'Bearer key-of-the-tests' });
  assert.match(await reply.text(), /Hello\./);
  assert.equal(model.requests.length, 1);
});
