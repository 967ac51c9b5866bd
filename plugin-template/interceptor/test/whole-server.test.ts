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
  plugins: { meter: { use: plugin, maxMessages: 1 } },
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

test('meters the turns of a whole server, and refuses long conversations', async () => {
  model.enqueue({ text: 'Hello.' });
  assert.equal((await ask(server.url, 'Hi')).status, 200);
  assert.ok(server.logs.some(({ msg }) => msg === 'turn'));
  const messages = ['one', 'two'].map((content) => ({ role: 'user', content }));
  assert.equal((await ask(server.url, '', { messages })).status, 400);
  assert.equal(model.requests.length, 1);
});
