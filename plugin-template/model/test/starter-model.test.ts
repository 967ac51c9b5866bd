import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { ModelConnectors } from '@plugboard/kernel';
import { modelConnectorContract, modelRequest, pluginContract, startServer, testContext } from '@plugboard/testing';
import plugin from '../src/index.ts';

/** Requests for other models than `small`. */
let refused = 0;

/**
 * A model server over real HTTP that answers with three lines. It knows the model `small`, and two
 * that answer wrongly.
 */
const server = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  const { model } = JSON.parse(body);
  if (model === 'confused') return void response.end('<html>\n');
  if (model === 'endless') return void response.end('x'.repeat(1_000_001));
  if (model !== 'small') {
    refused++;
    return void response.writeHead(404).end();
  }
  for (const text of ['Hello', ' there', '.']) {
    response.write(`${JSON.stringify({ text })}\n`);
    await setTimeout(5);
  }
  response.end(`${JSON.stringify({ end: { read: 1, written: 3 } })}\n`);
});
await once(server.listen(0, '127.0.0.1'), 'listening');
after(() => {
  server.close();
  server.closeAllConnections();
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/generate`;

const connector = (config: object = {}) =>
  testContext(plugin, { config: { url, model: 'small', ...config } }).contributed(ModelConnectors);
const begin = (config: object) =>
  connector(config).stream(modelRequest('Hello'), new AbortController().signal)[Symbol.asyncIterator]().next();

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url), config: { url, model: 'small' } });
modelConnectorContract(test, {
  open: () => connector(),
  text: modelRequest('Hello'),
  failing: () => {
    const before = refused;
    return { connector: connector({ model: 'huge' }), requests: () => refused - before };
  },
});

test('reports an unknown model as an error that no retry cures', async () => {
  await assert.rejects(begin({ model: 'huge' }), { message: 'it answered with status 404.', retryable: false });
});

test('reports a line that is not JSON, or too long, as an error that no retry cures', async () => {
  await assert.rejects(begin({ model: 'confused' }), { message: 'it sent a line that is not JSON.', retryable: false });
  await assert.rejects(begin({ model: 'endless' }), { message: /line of more than 1000000 characters/, retryable: false });
});

test('reports an unreachable server as an error that a retry may cure', async () => {
  await assert.rejects(begin({ url: 'http://127.0.0.1:1/' }), { name: 'ModelError', retryable: true });
});

test('answers in a whole server', async () => {
  const plugboard = await startServer({
    transports: { http: { port: 0 }, 'chat-completions': {} },
    models: { small: { use: plugin, url, model: 'small' } },
    agents: { helper: { model: 'small' } },
  });
  after(() => plugboard.stop());
  const reply = await fetch(`${plugboard.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'helper', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  assert.match(await reply.text(), /Hello there\./);
});
