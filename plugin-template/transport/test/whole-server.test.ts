import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ModelServer, startServer } from '@plugboard/testing';
import plugin from '../src/index.ts';

const model = await ModelServer.start();
after(() => model.close());
const server = await startServer({
  transports: { http: { port: 0 }, ask: { use: plugin } },
  models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
  agents: { helper: { model: 'fast' } },
});
after(() => server.stop());

test("answers with the agent's text in a whole server", async () => {
  model.enqueue({ text: 'Hello.' });
  const reply = await fetch(`${server.url}/v1/ask`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent: 'helper', text: 'Hi' }),
  });
  assert.equal(await reply.text(), 'Hello.');
});
