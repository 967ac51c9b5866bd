import { tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { checkOptions, pluginContract, testContext } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { signal, startExporter } from './exporter.js';

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('serves the page at its path, in the text format of Prometheus', async (t) => {
  const { address } = await startExporter(t, { path: '/internal/numbers' });
  t.match(address, /^http:\/\/127\.0\.0\.1:\d+\/internal\/numbers$/);
  const response = await fetch(`${address}?format=text`);
  t.equal(response.status, 200);
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  t.match(await response.text(), /^# TYPE plugboard_turns_total counter$/m);
  const head = await fetch(address, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(await head.text(), '');
});

t.test('refuses other paths and methods, and says what it serves', async (t) => {
  const { address } = await startExporter(t);
  const other = await fetch(address.replace('/metrics', '/metrics/all'));
  t.equal(other.status, 404);
  t.equal(await other.text(), 'the metrics are at /metrics\n');
  for (const method of ['POST', 'DELETE', 'OPTIONS']) {
    const refused = await fetch(address, { method, ...(method === 'POST' && { body: 'x'.repeat(1_000) }) });
    t.equal(refused.status, 405, method);
    t.equal(refused.headers.get('allow'), 'GET, HEAD');
    t.equal(refused.headers.get('connection'), 'close', 'the body is not read');
  }
});

t.test('another host than loopback is refused with both cures', async (t) => {
  const refusal =
    /^token: is missing: "0\.0\.0\.0" accepts connections from other machines.* Set a `token`.* or set `open: true`/;
  t.match(checkOptions(plugin, { host: '0.0.0.0' }).faults, [refusal]);
  t.equal(checkOptions(plugin, { host: '::' }).faults.length, 1);
  t.equal(checkOptions(plugin, { host: 'agents.internal' }).faults.length, 1);
  for (const config of [
    { host: '0.0.0.0', token: 'secret' },
    { host: '0.0.0.0', open: true },
    { host: '::1' },
    { host: '127.9.0.1' },
  ]) {
    t.same(checkOptions(plugin, config).faults, [], JSON.stringify(config));
  }
  for (const path of ['metrics', '/a b', '/metrics?x']) t.equal(checkOptions(plugin, { path }).faults.length, 1, path);
  t.same(checkOptions(plugin, { token: '' }).faults, ['token: must not be empty']);
  const characters = 'token: must consist of ASCII letters, digits and punctuation, without a space';
  t.same(checkOptions(plugin, { token: 'two words' }).faults, [characters]);
});

t.test('wants its token as a bearer credential', async (t) => {
  const { address } = await startExporter(t, { host: '0.0.0.0', token: 'token-of-the-metrics' });
  const url = address.replace('0.0.0.0', '127.0.0.1');
  const status = async (authorization?: string, path = '') => {
    const response = await fetch(url + path, authorization === undefined ? {} : { headers: { authorization } });
    await response.text();
    return response.status;
  };
  t.equal(await status('Bearer token-of-the-metrics'), 200);
  t.equal(await status('bearer token-of-the-metrics'), 200);
  for (const wrong of [undefined, 'Bearer token-of-the-metric', 'Bearer ', 'Basic dG9rZW46', `Bearer ${'x'.repeat(600)}`]) {
    t.equal(await status(wrong), 401, String(wrong));
    t.equal(await status(wrong, '/other'), 401, 'a caller without the token learns no path');
  }
  const refused = await fetch(url);
  t.equal(refused.headers.get('www-authenticate'), 'Bearer');
  t.match(await refused.text(), /^set the token of plugins\.metrics/);
});

t.test('without a token, a page in a browser cannot read it under another name', async (t) => {
  const { port } = await startExporter(t);
  const status = async (host: string) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET /metrics HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    let reply = '';
    for await (const chunk of socket.setEncoding('latin1')) reply += chunk;
    return Number(reply.slice(9, 12));
  };
  for (const own of [`127.0.0.1:${port}`, 'LOCALHOST', '[::1]:9464']) t.equal(await status(own), 200, own);
  for (const other of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', '127.0.0.1@evil.example', '']) {
    t.equal(await status(other), 403, other);
  }
});

t.test('a port in use is named with the entry and the cure', async (t) => {
  const other = createServer();
  await once(other.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => other.close());
  const { port } = other.address() as { port: number };
  const ctx = testContext(plugin, { config: { port }, entry: 'plugins.metrics' });
  await t.rejects(async () => ctx.lifecycle.start?.(signal), {
    message: `cannot listen on port ${port} of 127.0.0.1: it is in use by another program: stop that program, or set another \`port\` for plugins.metrics (0 picks a free one)`,
    cause: { code: 'EADDRINUSE' },
  });
  await ctx.lifecycle.stop?.(signal);
  const foreign = testContext(plugin, { config: { port: 0, host: '192.0.2.1', open: true }, entry: 'plugins.metrics' });
  await t.rejects(async () => foreign.lifecycle.start?.(signal), /another `host` or `port` for plugins\.metrics/);
});

t.test('a stop frees the port and the channels, also while a client is connected', async (t) => {
  const { ctx, port } = await startExporter(t);
  const client = connect(port, '127.0.0.1');
  await once(client, 'connect');
  client.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(client, 'data');
  t.equal(tracingChannel('plugboard.turn').hasSubscribers, true);
  await ctx.lifecycle.stop?.(signal);
  await ctx.lifecycle.stop?.(signal);
  for (const name of ['http', 'turn', 'step', 'tool', 'summary', 'store']) {
    t.equal(tracingChannel(`plugboard.${name}`).hasSubscribers, false, name);
  }
  const next = testContext(plugin, { config: { port } });
  await next.lifecycle.start?.(signal);
  await next.lifecycle.stop?.(signal);
});

t.test('scrapes within a second get one page', async (t) => {
  const { address, scrape, clock } = await startExporter(t);
  const { start, asyncEnd } = tracingChannel('plugboard.turn');
  const turn = () => {
    const published: object = { turnId: 'turn_1', request: { target: { name: 'assistant' } } };
    start.publish(published);
    asyncEnd.publish(Object.assign(published, { status: 'stop' }));
  };
  turn();
  t.equal((await scrape()).value('plugboard_turns_total'), 1);
  turn();
  const pages = await Promise.all(Array.from({ length: 10 }, async () => (await fetch(address)).text()));
  t.equal(new Set(pages).size, 1);
  t.match(pages[0], 'plugboard_turns_total{agent="assistant",status="stop"} 1');
  clock.advance(1_000);
  t.match(await (await fetch(address)).text(), 'plugboard_turns_total{agent="assistant",status="stop"} 2');
});

t.test('a client that does not read its page is cut after ten seconds, and others do not wait', async (t) => {
  const { port, clock, address } = await startExporter(t);
  const { start, asyncEnd } = tracingChannel('plugboard.turn');
  for (let agent = 0; agent < 500; agent++) {
    for (let failure = 0; failure < 20; failure++) {
      const published: object = { turnId: 'turn_1', request: { target: { name: `agent-with-a-long-name-${agent}` } } };
      start.publish(published);
      asyncEnd.publish(Object.assign(published, { status: `failure_${failure}` }));
    }
  }
  const client = connect(port, '127.0.0.1');
  t.teardown(() => client.destroy());
  await once(client, 'connect');
  client.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(client, 'readable'); // its page has begun, and is larger than the buffers of both sockets
  const page = await (await fetch(address)).text();
  t.ok(page.length > 12_000_000, `${page.length} bytes`);
  clock.advance(9_999);
  t.equal(client.readableEnded, false);
  clock.advance(1);
  let received = 0;
  const cut = new Promise((resolve) => client.once('error', resolve).once('close', resolve));
  client.on('data', (chunk) => {
    received += chunk.length;
  });
  await cut;
  t.ok(received < page.length, `received ${received} bytes`);
});

t.test('has 20 connections, and closes further ones at once', async (t) => {
  const { port, address } = await startExporter(t);
  const clients = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'));
  t.teardown(() => clients.forEach((client) => void client.destroy()));
  await Promise.all(clients.map((client) => once(client, 'connect')));
  const further = connect(port, '127.0.0.1');
  await once(further, 'close');
  const first = clients[0];
  first?.end();
  await once(first ?? further, 'close');
  t.equal((await fetch(address)).status, 200);
});
