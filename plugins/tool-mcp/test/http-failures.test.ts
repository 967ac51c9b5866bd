import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { entry } from './entry.js';
import { type McpServer, mcpServer } from './http-server.js';
import { inBothEras, started } from './http-started.js';

inBothEras('MCP-2 a server that is away fails calls at once, and is tried again until it is back', async (t, era) => {
  const { server, files } = await started(t, era);
  const port = Number(new URL(server.url).port);
  await server.close();
  const away = {
    code: 'mcp_not_running',
    message: 'the MCP server of tools.files cannot be reached: try again in a few seconds',
  };
  await t.rejects(files.call('echo'), away);
  t.match(files.health(), { state: 'degraded', reason: /cannot be reached/ });
  t.strictSame(files.names(), ['echo', 'write'], 'its tools stay declared');
  await t.rejects(files.call('echo'), away);
  await files.advance(2000);
  await files.logged(/could not be reached; will retry/);

  const again = await mcpServer(t, era);
  await again.close();
  await again.listen(port);
  await files.advance(4000);
  await files.logged(/is ready/);
  t.same(files.health(), { state: 'ok' });
  t.equal(await files.text('echo', { a: 1 }), '{"a":1}');
});

t.test('MCP-2 an error of HTTP on the first request fails the start, and says nothing about the revision', async (t) => {
  for (const [status, message] of [
    [401, /answered HTTP 401: check `headers`/],
    [403, /answered HTTP 403: check `headers`/],
    [503, /answered HTTP 503: check `url`, or the server; it said: down for \[redacted\]/],
  ] as const) {
    const server = await mcpServer(t, 'old');
    server.intercept = (_, response) => {
      response.writeHead(status).end('down for the-secret-key');
      return true;
    };
    const files = entry(t, { url: server.url, headers: { 'X-Key': 'the-secret-key' } });
    await t.rejects(files.start(), { code: 'mcp_not_started', message });
    t.equal(server.of('initialize').length, 0);
  }
});

t.test('MCP-2 silence and an address where nothing listens fail the start with a sentence', async (t) => {
  const server = await mcpServer(t, 'new');
  server.intercept = () => true;
  const files = entry(t, { url: server.url });
  const failing = t.rejects(files.start(), { message: /\/mcp did not answer in time: check `url`/ });
  await eventually(() => server.received.length > 0);
  await files.advance(10_000);
  await failing;
  await server.close();
  await t.rejects(entry(t, { url: server.url }).start(), {
    message: /^http:\/\/127\.0\.0\.1:\d+ cannot be reached: connect ECONNREFUSED/,
  });
});

t.test('MCP-3 ten calls in a session that the server forgot cause one new session, and each is sent once more', async (t) => {
  const { server, files } = await started(t, 'old');
  server.sessions.clear();
  const said = await Promise.all(Array.from({ length: 10 }, (_, n) => files.text('echo', { n })));
  t.strictSame(
    said,
    Array.from({ length: 10 }, (_, n) => `{"n":${n}}`),
  );
  t.equal(server.of('initialize').length, 2);
  t.equal(server.of('tools/call').length, 20);
  t.equal(server.of('server/discover').length, 1, 'the revision is known');
});

inBothEras('MCP-1 a server that was replaced by one of the other revision is found after one failed call', async (t, era) => {
  const { server, files } = await started(t, era);
  server.era = era === 'old' ? 'new' : 'old';
  const lists = server.of('tools/list').length;
  await t.rejects(files.call('write'), { code: 'mcp_call_refused' });
  await eventually(() => {
    files.clock.advance(100);
    return server.of('tools/list').length > lists;
  });
  t.equal(await files.text('echo', { a: 1 }), '{"a":1}');
});

t.test('MCP-3 a second 404 is an error of the tool', async (t) => {
  const { server, files } = await started(t, 'old');
  server.intercept = ({ method }, response) => {
    if (method === 'tools/call') response.writeHead(404).end('Session not found');
    return method === 'tools/call';
  };
  const message = 'the MCP server of tools.files answered HTTP 404; it said: Session not found';
  await t.rejects(files.call('echo'), { code: 'mcp_call_refused', message });
  t.equal(server.of('tools/call').length, 2);
});

inBothEras('MCP-6 a stream that breaks fails the call at once, as one of unknown effect', async (t, era) => {
  const { server, files } = await started(t, era);
  server.tools.write = (call) => {
    call.stream();
    setImmediate(() => call.response.destroy());
  };
  const message =
    'the connection to the MCP server of tools.files broke during this call: whether the call took effect is unknown';
  await t.rejects(files.call('write'), { code: 'mcp_call_lost', message, effect: 'unknown' });
  t.equal(server.of('tools/call').length, 1);
  t.same(files.health(), { state: 'ok' });
});

inBothEras('MCP-6 an answer that ends early, is empty or is none fails the call at once', async (t, era) => {
  const { server, files } = await started(t, era);
  const answers: McpServer['tools'][string][] = [
    (call) => call.response.writeHead(200, { 'content-type': 'application/json', 'content-length': 99 }).end('{'),
    (call) => call.response.writeHead(202).end(),
    (call) => call.response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":4711,"result":{}}'),
    (call) => call.response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n'),
    (call) => call.response.destroy(),
  ];
  for (const answer of answers) {
    server.tools.write = (call) => {
      answer(call);
      if (!call.response.writableEnded || call.response.hasHeader('content-length')) call.response.socket?.end();
    };
    await t.rejects(files.call('write'), { code: 'mcp_call_lost' });
  }
  server.tools.write = (call) => call.response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message: /content type: text\/html/ });
});

inBothEras('an error of HTTP is told with what the server said, without secrets', async (t, era) => {
  const { server, files } = await started(t, era, undefined, { headers: { Authorization: 'Bearer abc-secret' } });
  server.tools.write = (call) => call.response.writeHead(503).end('no abc-secret today');
  const message =
    'the MCP server of tools.files answered HTTP 503: whether the call took effect is unknown; it said: no [redacted] today';
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message, effect: 'unknown' });
  server.tools.write = (call) =>
    call.response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: call.id, error: { code: -32602, message: 'abc-secret is not a city' } }));
  await t.rejects(files.call('write'), { message: '[redacted] is not a city' });
});

inBothEras(
  'MCP-9 MCP-11 a changed list is used by the next turn, also after a proxy cut the stream, and is audited',
  async (t, era) => {
    const { server, files } = await started(t, era);
    server.list = [server.tool('echo', { description: 'new' }), server.tool('added')];
    await server.changed();
    await eventually(() => {
      files.clock.advance(100);
      return files.names().includes('added');
    });
    t.strictSame(files.names(), ['echo', 'added']);
    const line = files.lines.find(({ event }) => event === 'tools_changed');
    const digest = /^sha256:[0-9a-f]{64}$/;
    t.match(line, {
      entry: 'tools.files',
      added: [{ name: 'added', digest }],
      changed: [{ name: 'echo', digest }],
      removed: ['write'],
    });

    const opened = () => server.of(era === 'old' ? 'GET' : 'subscriptions/listen').length;
    for (let cut = 1; cut <= 3; cut++) {
      const before = opened();
      await eventually(() => server.streams.size > 0);
      server.cut();
      await eventually(() => server.streams.size === 0);
      files.clock.advance(900);
      t.equal(opened(), before, 'not before a second is over');
      await eventually(() => {
        files.clock.advance(500);
        return opened() > before;
      });
    }
    server.list = [server.tool('last')];
    await server.changed();
    await eventually(() => {
      files.clock.advance(100);
      return files.names().includes('last');
    });
  },
);

t.test('MCP-10 a list is read again when it is too old', async (t) => {
  const { server, files } = await started(t, 'new', (server) => {
    server.ttlMs = 120_000;
  });
  const lists = server.of('tools/list').length;
  files.clock.advance(119_000);
  files.clock.advance(1000);
  files.clock.advance(100);
  await eventually(() => server.of('tools/list').length > lists);
});

inBothEras('S-75 an answer or event of more than 16 MiB is not read, and later calls work', async (t, era) => {
  const { server, files } = await started(t, era);
  const large = `{"jsonrpc":"2.0","x":"${'x'.repeat(17 * 2 ** 20)}`;
  const message = /larger than 1\d(\.\d+)? MiB and was not read; ask for less of it/;
  server.tools.write = (call) => call.response.writeHead(200, { 'content-type': 'application/json' }).end(large);
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message });
  server.tools.write = (call) => {
    call.stream();
    call.response.write(`data: ${large}`);
  };
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message });
  server.tools.write = (call) => call.response.writeHead(500).end('e'.repeat(2 ** 20));
  await t.rejects(files.call('write'), { message: /HTTP 500.*e{100}/ });
  t.equal(await files.text('echo', {}), '{}');
});

inBothEras('S-07 a redirect to another origin is not followed: nothing is sent there', async (t, era) => {
  const { server, files } = await started(t, era, undefined, { headers: { Authorization: 'Bearer abc-secret' } });
  let asked = 0;
  const other = createServer((_, response) => {
    asked += 1;
    response.end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const { port } = other.address() as AddressInfo;
  for (const location of [`http://127.0.0.1:${port}/`, 'http://169.254.169.254/latest', 'file:///etc/passwd']) {
    for (const status of [301, 302, 307, 308]) {
      server.tools.write = (call) => call.response.writeHead(status, { location }).end();
      await t.rejects(files.call('write'), { code: 'mcp_call_refused', message: /answered HTTP 30\d; it said: .*not followed/ });
    }
  }
  t.equal(asked, 0);
});

inBothEras('S-07 a redirect within the origin is followed, with the body', async (t, era) => {
  const { server, files } = await started(t, era);
  server.intercept = ({ method }, response) => {
    if (method !== 'tools/call' || response.req.url !== '/mcp') return false;
    response.writeHead(307, { location: '/moved' }).end();
    return true;
  };
  t.equal(await files.text('echo', { a: 1 }), '{"a":1}');
});

inBothEras('a call that is under way when the server goes away may still end, and stop ends it', async (t, era) => {
  const { server, files } = await started(t, era);
  const answers: (() => void)[] = [];
  const closed = Promise.withResolvers<void>();
  server.tools.write = (call) => {
    const write = call.stream();
    call.response.once('close', () => answers.length === 2 && closed.resolve());
    answers.push(() => write({ id: call.id, result: { resultType: 'complete', content: [{ type: 'text', text: 'late' }] } }));
  };
  const first = files.text('write');
  const second = t.rejects(files.text('write'), { message: 'the MCP server of tools.files has been stopped' });
  await eventually(() => answers.length === 2);
  server.refuse();
  await t.rejects(files.call('echo'), { code: 'mcp_not_running' });
  answers[0]?.();
  t.equal(await first, 'late');
  await files.stop();
  await second;
  await closed.promise;
});

t.test('stop ends the session, the streams and all timers', async (t) => {
  const { server, files } = await started(t, 'old');
  await eventually(() => server.streams.size > 0);
  await files.stop();
  t.equal(server.of('DELETE').length, 1);
  await eventually(() => server.streams.size === 0);
  t.equal(files.clock.pending, 0);
  await t.rejects(files.call('echo'), { message: 'the MCP server of tools.files has been stopped' });
});
