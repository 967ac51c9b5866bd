import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { definePlugin, type Tool, ToolSources } from '@plugboard/kernel';
import { ModelServer, startServer } from '@plugboard/testing';
import plugin from '../src/index.ts';

const model = await ModelServer.start();
after(() => model.close());
const close = definePlugin({
  name: 'close',
  apiVersion: 1,
  summary: 'Closes a ticket',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    const inputSchema = { type: 'object', properties: {} };
    const tool: Tool = { name: 'close', description: 'Closes the ticket.', inputSchema, effect: 'write', run: () => 'closed' };
    const tools = [tool];
    ctx.contribute(ToolSources, { single: true, tools: () => tools });
  },
});
const server = await startServer({
  transports: { http: { port: 0 }, 'chat-completions': {} },
  models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
  agents: { helper: { model: 'fast', tools: ['close'] } },
  tools: { close: { use: close } },
  plugins: { guard: { use: plugin, readOnly: ['helper'] } },
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

test('refuses a call of a read-only agent in a whole server', async () => {
  model.enqueue({ toolCalls: [{ name: 'close', arguments: {} }] }, { text: 'I may not.' });
  await (await ask(server.url, 'Close it')).text();
  assert.ok(!JSON.stringify(model.requests[1]?.body.messages ?? []).includes('closed'), 'the tool did not run');
});
