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
  plugins: { watch: { use: plugin, slowAfter: '0ms' } },
});
after(() => server.stop());

test('watches the turns of a whole server', async () => {
  model.enqueue({ text: 'Hello.' });
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'helper', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  assert.equal(response.status, 200);
  const [line] = server.logs.filter(({ msg }) => msg === 'slow turn');
  assert.equal(line?.agent, 'helper');
  assert.equal(line?.status, 'stop');
});
