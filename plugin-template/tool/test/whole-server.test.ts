import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ModelServer, startServer } from '@plugboard/testing';
import plugin from '../src/index.ts';

const model = await ModelServer.start();
after(() => model.close());
const server = await startServer({
  transports: { http: { port: 0 }, 'chat-completions': {} },
  models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
  agents: { helper: { model: 'fast', tools: ['dice'] } },
  tools: { dice: { use: plugin, sides: 20 } },
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

test('rolls dice for a model in a whole server', async () => {
  model.enqueue({ toolCalls: [{ name: 'dice', arguments: { dice: 2 } }] }, { text: 'There you are.' });
  assert.match(await (await ask(server.url, 'Roll two dice')).text(), /There you are\./);
  assert.match(String(model.requests[1]?.body.messages.at(-1)?.content), /^\d+ \+ \d+ = \d+$/);
});
