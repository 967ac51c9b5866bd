import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import { startNginx } from '../support/nginx.js';
import { Page } from '../support/page.js';
import { ASSISTANT, TestServer } from '../support/test-server.js';

/**
 * The example of the guide in a real nginx, which .ci/run installs: without it, this test fails.
 */

const root = join(import.meta.dirname, '../..');
const YAML = `
transports: { http: { port: 0 }, chat-completions: {}, responses: {}, websocket: {}, sse: {}, health: {}, playground: {} }
auth: { bearer: { tokens: [{ name: me, project: default, token: token-of-the-test-0123456789 }] } }
${ASSISTANT}`;
const authorization = 'Bearer token-of-the-test-0123456789';

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => void server.close(resolve));
  return port;
}

/** Runs nginx with the example before a server. TLS alone is left out. @returns its address. */
async function nginx(t: Test, server: string): Promise<string> {
  const [example] = new Page(join(root, 'docs/guides/operating.md')).in('nginx');
  const port = await freePort();
  const site = (example?.text ?? '')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replaceAll(/^ *ssl_certificate.*\n/gm, '')
    .replace('http://127.0.0.1:8080', server);
  const url = `http://127.0.0.1:${port}`;
  await startNginx(t, site, url);
  return url;
}

t.test('the nginx of the guide passes the page, streams, sockets and health', async (t) => {
  const app = await TestServer.start(t, YAML);
  const url = await nginx(t, app.url);

  t.equal((await fetch(`${url}/readyz`)).status, 200);
  const page = await fetch(`${url}/playground`);
  t.equal(page.status, 200);
  const script = /(?:src|href)="([^"]+\.(?:js|css))"/.exec(await page.text())?.[1];
  if (script !== undefined) t.equal((await fetch(new URL(script, page.url))).status, 200, script);
  t.equal((await fetch(`${url}/v1/chat/completions`, { method: 'POST' })).status, 401);

  const rest = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', rest.promise, ' and half.'] });
  const stream = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
  });
  let read = '';
  for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    read += chunk;
    if (read.includes('Half')) rest.resolve(); // it came before the answer was complete
  }
  t.match(read, /Half[\s\S]* and half\.[\s\S]*\[DONE\]/);

  app.models.enqueue({ text: 'Over a socket.' });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/live`, { headers: { authorization } });
  t.teardown(() => socket.terminate());
  let heard = '';
  socket.on('message', (data) => {
    heard += String(data);
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.send(JSON.stringify({ type: 'response.create', model: 'assistant', input: 'Hi' }));
  await eventually(() => heard.includes('Over a socket.') && heard.includes('response.completed'));
});
