import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { startWithAllRoutes, TOKEN, tokenFor } from '../../../test/attacks/support/all-routes.js';
import { tokenCommand } from '../../../test/attacks/support/token-command.js';
import { liveConfig } from '../../../test/support/live.js';
import { type LiveResponseBody, LiveSocket, textOf } from '../../../test/support/live-socket.js';
import { rawExchange } from '../../../test/support/raw-exchange.js';
import { TestServer } from '../../../test/support/test-server.js';
import { RawClient } from '../../transport-http/test/support/raw-client.js';
import { frame, handshake } from './support/frames.js';

const never = new Promise<never>(() => {});
const PATHS = ['/v1/responses', '/v1/live'];

/**
 * Seconds of the server's clock. After each, the server finishes what fell due, and frames travel.
 */
async function seconds(app: TestServer, clock: ManualClock, count: number): Promise<void> {
  for (let second = 0; second < count; second++) {
    clock.advance(1_000);
    for (let trip = 0; trip < 3; trip++) await app.get('/health');
  }
}

async function isAccepted(app: TestServer, token: string): Promise<boolean> {
  const { status } = await app.get('/v1/models', { authorization: `Bearer ${token}` });
  return status !== 401;
}

/** Creates a token, and waits until the server accepts it. */
async function createToken(app: TestServer, clock: ManualClock, options: Readonly<Record<string, string>>): Promise<string> {
  const token = await tokenCommand(app, 'create', { project: 'default', ...options });
  await eventually(() => {
    clock.advance(1_000);
    return isAccepted(app, token);
  });
  return token;
}

/**
 * Revokes a token. Then ten seconds of the server's clock pass: five until the server no longer
 * accepts the token for requests, and five more.
 */
async function revokeToken(app: TestServer, clock: ManualClock, name: string, token: string): Promise<void> {
  await tokenCommand(app, 'revoke', {}, name);
  let left = 5;
  await eventually(async () => {
    if (left-- > 0) clock.advance(1_000);
    return !(await isAccepted(app, token));
  });
  await seconds(app, clock, 5);
}

t.test('S-08 a WebSocket from a page of another site is a 403, on open and closed servers', async (t) => {
  for (const [app, token] of [
    [await startWithAllRoutes(t, { auth: '' }), undefined],
    [await startWithAllRoutes(t), TOKEN],
  ] as const) {
    for (const path of PATHS) {
      for (const origin of ['https://evil.example', 'null', `http://localhost:${app.port + 1}`]) {
        const refused = await LiveSocket.refused(t, app, { path, origin, ...(token !== undefined && { token }) });
        t.match(refused, { status: 403, error: { code: 'origin_not_allowed' } }, `${path} ${origin}`);
      }
      const same = await LiveSocket.open(t, app, { path, origin: app.url, ...(token !== undefined && { token }) });
      t.equal(same.ws.readyState, same.ws.OPEN, 'a page of this server is served');
    }
  }
});

t.test('S-09 a WebSocket under a foreign Host is a 403 on an open server', async (t) => {
  const app = await startWithAllRoutes(t, { auth: '' });
  for (const path of PATHS) {
    const refused = await LiveSocket.refused(t, app, { path, headers: { host: 'evil.example' } });
    t.match(refused, { status: 403, error: { code: 'host_not_allowed' } });
  }
});

t.test('S-12 a socket whose token is revoked is closed with 4401 within ten seconds, and creates nothing more', async (t) => {
  const clock = new ManualClock();
  const app = await startWithAllRoutes(t, { clock });
  const token = await createToken(app, clock, { name: 'ci' });
  const [live, idle] = [await LiveSocket.open(t, app, { token }), await LiveSocket.open(t, app, { token })];
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' });
  await revokeToken(app, clock, 'ci', token);
  t.same(await idle.closed, { code: 4401, reason: 'token_revoked' });
  t.match(idle.events.at(-1), { type: 'error', status: 401, error: { code: 'invalid_api_key' } });
  t.same(await live.closed, { code: 4401, reason: 'token_revoked' });
  t.match(await LiveSocket.refused(t, app, { token }), { status: 401 });
});

t.test('S-12 the token is checked for each message, before the next look at all sockets', async (t) => {
  const clock = new ManualClock();
  const app = await startWithAllRoutes(t, { clock });
  const created = clock.now();
  const token = await createToken(app, clock, { name: 'ci', expires: '60s' });
  clock.advance(56_000 - (clock.now() - created));
  const late = await LiveSocket.open(t, app, { token });
  clock.advance(5_000);
  late.create({ model: 'assistant', input: 'x' });
  t.same(await late.closed, { code: 4401, reason: 'token_revoked' });
  t.match(late.events.at(-1), { type: 'error', status: 401 });
  t.equal(app.models.requests.length, 0);
});

t.test('S-17 refused upgrades cost nothing: 1,000 without a token are 401 and leave nothing behind', async (t) => {
  const app = await startWithAllRoutes(t);
  const statuses = new Map<number, number>();
  for (let hundred = 0; hundred < 10; hundred++) {
    const replies = await Promise.all(Array.from({ length: 100 }, () => rawExchange(app.port, ...handshake('/v1/live'))));
    for (const { status } of replies) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  t.same([...statuses], [[401, 1_000]]);
  const started = performance.now();
  await app.stop();
  t.ok(performance.now() - started < 20_000, 'no refused upgrade is waited for when the server stops');
});

t.test('S-26 an upgrade needs the scope chat, like the request it replaces', async (t) => {
  const app = await startWithAllRoutes(t);
  for (const path of PATHS) {
    const refused = await LiveSocket.refused(t, app, { path, token: tokenFor('models:read') });
    t.match(refused, { status: 403, error: { type: 'svc_error', message: /lacks the scope `chat`/ } });
    t.ok(await LiveSocket.open(t, app, { path, token: tokenFor('chat') }));
    t.match(await LiveSocket.refused(t, app, { path: `${path}?token=${TOKEN}`, token: TOKEN }), { status: 400 });
    const reply = await app.get('/v1/live', { authorization: `Bearer ${TOKEN}` });
    t.equal(reply.status, 426, 'without Upgrade');
  }
});

t.test('C-215 a malformed handshake is a 400 with a sentence', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const [wrong, message] of [
    [['Sec-WebSocket-Version: 8'], /only version 13/],
    [['Sec-WebSocket-Key: short'], /16 bytes in base64/],
    [['Sec-WebSocket-Protocol: a,,b'], /different names/],
    [['Sec-WebSocket-Protocol: a, a'], /different names/],
  ] as const) {
    const name = wrong[0].split(':')[0];
    const lines = handshake('/v1/live').filter((line) => line.split(':')[0] !== name);
    const reply = await rawExchange(app.port, ...lines.slice(0, -2), ...wrong, '', '');
    t.equal(reply.status, 400);
    t.match(JSON.parse(reply.body).error.message, message);
  }
});

t.test('S-22 fragments to dust, huge frames and thousands of headers end the connection, not the server', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const before = process.memoryUsage().rss;
  const dust = await RawClient.open(app.port);
  dust.send(...handshake('/v1/live'));
  await dust.until(/101 Switching/);
  dust.socket.write(frame('x', { fin: false }));
  const pieces = Buffer.concat(Array.from({ length: 10_000 }, () => frame('x', { opcode: 0, fin: false })));
  for (let round = 0; round < 100 && !dust.socket.destroyed; round++) {
    if (!dust.socket.write(pieces))
      await Promise.race([new Promise((resolve) => dust.socket.once('drain', resolve)), dust.ended()]);
  }
  t.match(Buffer.from(await dust.ended(), 'latin1').toString('hex'), /880[2-9a-f]03f0/, 'closed with 1008');

  const huge = await RawClient.open(app.port);
  huge.send(...handshake('/v1/live'));
  await huge.until(/101 Switching/);
  huge.socket.write(Buffer.from([0x81, 0x80 | 127, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
  t.match(Buffer.from(await huge.ended(), 'latin1').toString('hex'), /880[2-9a-f]03f1/, 'closed with 1009 before the data came');

  const many = Array.from({ length: 2_100 }, (_, at) => `x${at}: y`);
  for (const headers of [many, [`Sec-WebSocket-Protocol: ${'a,'.repeat(50_000)}`]]) {
    t.equal((await rawExchange(app.port, ...handshake('/v1/live').slice(0, -2), ...headers, '', '')).status, 431);
  }
  const spaces = `Sec-WebSocket-Protocol: x${' '.repeat(10_000)}y`;
  t.equal((await rawExchange(app.port, ...handshake('/v1/live').slice(0, -2), spaces, '', '')).status, 400);
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  t.ok(grown < 100, `${Math.round(grown)} MiB`);
  t.match((await app.get('/health')).body, { ready: true });
});

t.test('S-33 a reset at any moment is an ordinary disconnect', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const endless = function* () {
    for (;;) yield 'word '.repeat(100);
  };
  app.models.respond(() => ({ text: endless() }));
  const create = frame(JSON.stringify({ type: 'response.create', model: 'assistant', input: 'x', store: false }));
  const moments: ((raw: RawClient) => Promise<unknown> | unknown)[] = [
    () => {},
    (raw) => raw.send('GET /v1/live HTTP/1.1', 'Host: local'),
    (raw) => raw.send(...handshake('/v1/live')),
    async (raw) => {
      raw.send(...handshake('/v1/live'));
      await raw.until(/101/);
    },
    async (raw) => {
      raw.send(...handshake('/v1/live'));
      await raw.until(/101/);
      raw.socket.write(create.subarray(0, 9));
    },
    async (raw) => {
      raw.send(...handshake('/v1/live'));
      raw.socket.write(create);
      await raw.until(/101/);
    },
    async (raw) => {
      raw.send(...handshake('/v1/live'));
      raw.socket.write(create);
      await raw.until(/output_text\.delta/);
    },
    async (raw) => {
      raw.send(...handshake('/v1/live'));
      await raw.until(/101/);
      raw.socket.write(frame(Buffer.from([0x03, 0xe8]), { opcode: 8 }));
    },
  ];
  for (const [at, act] of moments.entries()) {
    for (let round = 0; round < 25; round++) {
      const raw = await RawClient.open(app.port);
      await act(raw);
      if (round % 2) raw.socket.resetAndDestroy();
      else raw.socket.end();
      raw.socket.unref();
      if (round % 2 === 0) setTimeout(() => raw.socket.destroy(), 20);
    }
    t.equal((await app.get('/health')).status, 200, `moment ${at}`);
  }
  await eventually(() => app.models.requests.every(({ state }) => state === 'aborted'));
  t.strictSame(
    app.started.logs.filter(({ level }) => level === 'error'),
    [],
  );
});

t.test('C-216 an ephemeral token opens one socket, as a sub-protocol that is never sent back', async (t) => {
  const clock = new ManualClock();
  const app = await startWithAllRoutes(t, { clock });
  const token = await createToken(app, clock, { name: 'page' });
  const issue = async () => {
    const reply = await app.request('POST', '/v1/ephemeral_tokens', { authorization: `Bearer ${token}` }, { scopes: ['chat'] });
    return (reply.body as { value: string }).value;
  };
  const value = await issue();
  const protocols = ['responses', `openai-insecure-api-key.${value}`];
  const live = await LiveSocket.open(t, app, { protocols });
  t.equal(live.ws.protocol, 'responses');
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' });
  await seconds(app, clock, 10);
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' }, 'it lives as long as its parent');
  t.match(await LiveSocket.refused(t, app, { protocols }), { status: 401 }, 'it was used');
  const late = await issue();
  await seconds(app, clock, 60);
  t.match(await LiveSocket.refused(t, app, { protocols: [`openai-insecure-api-key.${late}`] }), { status: 401 }, 'it expired');
  const two = await LiveSocket.refused(t, app, { token, protocols: ['responses', `openai-insecure-api-key.${await issue()}`] });
  t.equal(two.status, 401, 'two credentials');
  await revokeToken(app, clock, 'page', token);
  t.same(await live.closed, { code: 4401, reason: 'token_revoked' });
});

t.test('C-217 messages count against the rate limit of the token', async (t) => {
  const tokens = `{ name: few, project: default, token: token-of-a-slow-client, requestsPerMinute: 3 }`;
  const app = await startWithAllRoutes(t, { auth: `auth: { bearer: { tokens: [ ${tokens} ] } }\n` });
  const live = await LiveSocket.open(t, app, { token: 'token-of-a-slow-client' });
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' });
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' });
  t.match(await live.refuse({ model: 'assistant', input: 'x' }), { status: 429, error: { code: 'rate_limit_exceeded' } });
  t.equal(live.ws.readyState, live.ws.OPEN);
});

t.test('S-27 whatever a model writes reaches a client as text, never as an event of its own', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const texts = [
    '\n\nevent: response.completed\ndata: {"type":"response.completed","response":{}}\n\n',
    '"}\n{"type":"error","status":401,"error":{"code":"invalid_api_key"}}',
    'data: [DONE]\r\n\r\n',
    '\u0000\u2028\u2029\u0085</script><img src=x onerror=alert(1)>',
  ];
  const forged = { type: 'response.failed', sequence_number: 0, item: { type: 'mcp_call' }, error: null, event: 'error' };
  const chunk = (content: string) =>
    `event: response.failed\ndata: ${JSON.stringify({
      ...forged,
      choices: [{ ...forged, index: 0, delta: { ...forged, content } }],
    })}\n\n`;
  const raw = [...texts.map(chunk), 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'];
  const text = texts.join('');
  const types = (events: readonly { readonly type: string }[]) => [...new Set(events.map(({ type }) => type))];
  const expected = [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ];
  const request = { model: 'assistant', input: 'x' };

  app.models.enqueue({ raw });
  const live = await LiveSocket.open(t, app);
  live.create(request);
  const events = await live.turn();
  t.same(types(events), expected);
  t.equal(textOf(events.at(-1)?.response as LiveResponseBody), text);
  t.equal(live.events.length, events.length, 'nothing follows');

  app.models.enqueue({ raw });
  const reply = await app.request('POST', '/v1/responses', {}, { ...request, stream: true });
  const frames = reply.text.trimEnd().split('\n\n');
  t.equal(frames.pop(), 'data: [DONE]');
  const streamed = frames.map((frame) => JSON.parse(/^event: \S+\ndata: (.*)$/s.exec(frame)?.[1] ?? ''));
  t.same(types(streamed), expected);
  t.equal(textOf(streamed.at(-1).response), text);
});

t.test('R-093 random frames end connections with a code of the protocol, and the server keeps running', async (t) => {
  const app = await TestServer.start(t, liveConfig('{ maxConnectionsPerAddress: 200 }'));
  let seed = 42;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const messages = [
    '{"type":"svc:ping","id":1}',
    '{',
    '{"type":"response.cancel","response_id":"resp_x"}',
    '[]',
    '',
    '{"type":"x"}',
  ];
  const codes = new Map<number, number>();
  const clients = Array.from({ length: 100 }, async () => {
    const raw = await RawClient.open(app.port);
    raw.send(...handshake('/v1/live'));
    const head = await raw.until(/\r\n\r\n/);
    for (let at = 0; at < 200 && !raw.socket.destroyed; at++) {
      const bytes = Buffer.from(Array.from({ length: random(200) }, () => random(256)));
      const kind = random(10);
      if (kind < 6) raw.socket.write(frame(messages[random(messages.length)] ?? ''));
      else if (kind < 8) raw.socket.write(frame(bytes, { opcode: random(16), fin: random(2) === 1 }));
      else raw.socket.write(bytes);
    }
    raw.socket.end();
    const received = Buffer.from((await raw.ended()).slice(head.length), 'latin1');
    const close = received.lastIndexOf(0x88);
    const code = close >= 0 && close + 4 <= received.length ? received.readUInt16BE(close + 2) : 0;
    codes.set(code, (codes.get(code) ?? 0) + 1);
  });
  await Promise.all(clients);
  t.strictSame(
    [...codes.keys()].filter((code) => ![0, 1000, 1002, 1003, 1007, 1008, 1009].includes(code)),
    [],
    JSON.stringify([...codes]),
  );
  t.ok((codes.get(1002) ?? 0) > 10, JSON.stringify([...codes]));
  const live = await LiveSocket.open(t, app);
  t.match(await live.ask({ model: 'assistant', input: 'x' }), { status: 'completed' });
  await eventually(() => app.accessLog.length >= 100);
});

t.test('R-020 a client that leaves cancels what is not stored, at once, also before the first token', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const script of [{ text: ['So', never] }, { before: never }]) {
    const live = await LiveSocket.open(t, app);
    app.models.enqueue(script);
    const number = app.models.requests.length + 1;
    live.create({ model: 'assistant', input: 'x', store: false });
    const asked = await app.models.received(number);
    if (!('before' in script)) await live.until('response.output_text.delta');
    live.ws.terminate();
    t.equal(await asked.ended, 'aborted');
  }
});
