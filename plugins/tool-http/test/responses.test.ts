import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { api, documentOf, entry, textOf } from './api.js';

const DOCUMENT = documentOf({ '/a': { get: {}, post: {} } });
const MIB = 2 ** 20;

/** What a GET makes of an answer. */
async function answered(t: Test, answer: Parameters<typeof api>[1], config: object = {}) {
  const { url } = await api(t, answer);
  return textOf(await entry(t, DOCUMENT, { baseUrl: url, ...config }).call('get_a'));
}

t.test('OAS-10 text is passed on, in the charset that the server names', async (t) => {
  const of = (type: string | undefined, body: string | Buffer) =>
    answered(t, (response) => response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(body));
  t.equal(await of('application/json', '{"a":1}'), '{"a":1}');
  t.equal(await of('application/problem+json; charset=utf-8', '{"é":1}'), '{"é":1}');
  t.equal(await of('text/plain; charset=iso-8859-1', Buffer.from([0xe9])), 'é');
  t.equal(await of('text/plain; charset=unknown', 'é'), 'é');
  t.equal(await of(undefined, 'plain'), 'plain');
  t.equal(await of(undefined, Buffer.from([0, 1, 2])), '{"type":"other","kind":"application/octet-stream","bytes":3}');
  t.equal(await of('image/png', Buffer.alloc(2000)), '{"type":"other","kind":"image/png","bytes":2000}');
  t.equal(await answered(t, (response) => response.writeHead(204).end()), 'HTTP 204, without a body');
});

t.test('OAS-10 a status from 400 on is an error that begins with it, and has the body', async (t) => {
  const of = (status: number, body?: string) => answered(t, (response) => response.writeHead(status).end(body));
  t.equal(await of(404, 'no such order'), 'error: HTTP 404\nno such order');
  t.equal(await of(500), 'error: HTTP 500, without a body');
  t.equal(await of(302, 'no location'), 'no location');
  const image = { 'content-type': 'image/png' };
  t.equal(
    await answered(t, (response) => response.writeHead(418, image).end(Buffer.alloc(9))),
    'error: HTTP 418\n{"type":"other","kind":"image/png","bytes":9}',
  );
});

t.test('OAS-10 at most responseLimit bytes are read', async (t) => {
  const closed: Promise<unknown>[] = [];
  let written = 0;
  const text = await answered(
    t,
    (response) => {
      closed.push(once(response, 'close'));
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': 100 * MIB });
      const write = () => {
        while (written < 100 * MIB && !response.destroyed) {
          written += 65_536;
          if (!response.write(Buffer.alloc(65_536, 'é'))) return;
        }
      };
      response.on('drain', write);
      write();
    },
    { responseLimit: '1kb' },
  );
  const [note = '', ...rest] = text.split('\n');
  t.equal(note, '[only the first 1024 bytes of the answer were read: the rest exceeds `responseLimit`]');
  t.equal(rest.join('\n'), 'é'.repeat(512));
  await Promise.all(closed);
  t.ok(written < 20 * MIB, `${written}`);
  const exact = await answered(t, (response) => response.end('x'.repeat(1024)), { responseLimit: '1kb' });
  t.equal(exact, 'x'.repeat(1024));
});

t.test('OAS-10 the limit counts what a body decompresses to', async (t) => {
  const bomb = Buffer.alloc(200 * MIB);
  const encodings: Readonly<Record<string, (data: Buffer) => Buffer>> = {
    gzip: (data) => gzipSync(data),
    deflate: (data) => deflateSync(data),
    br: (data) => brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    zstd: (data) => zstdCompressSync(data),
  };
  for (const [encoding, compress] of Object.entries(encodings)) {
    const headers = { 'content-encoding': encoding, 'content-type': 'text/plain' };
    const of = (data: Buffer) => answered(t, (response) => response.writeHead(200, headers).end(compress(data)));
    const text = await of(bomb);
    t.ok(text.length < MIB + 200, encoding);
    t.match(text, /^\[only the first 1048576 bytes/);
    t.equal(await of(Buffer.from('hi')), 'hi', encoding);
  }
  const bad = { 'content-encoding': 'gzip' };
  t.equal(await answered(t, (response) => response.writeHead(200, bad).end()), 'HTTP 200, without a body');
  await t.rejects(
    answered(t, (response) => response.writeHead(200, bad).end('no gzip')),
    { code: 'http_broken', message: /the call can be repeated/ },
  );
  await t.rejects(
    answered(t, (response) => response.writeHead(200, { 'content-encoding': 'rot13' }).end('x')),
    { message: /it is in the unknown encoding "rot13"/ },
  );
});

/** A server that writes raw bytes. */
async function raw(t: Test, answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test('an answer that is cut or is not HTTP says whether the call can be repeated', async (t) => {
  const cut = await raw(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf'));
  const nothing = await raw(t, (socket) => socket.destroy());
  const noHttp = await raw(t, (socket) => socket.end('220 smtp.example.com ready\r\n'));
  const chunked = await raw(t, (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe'));
  for (const url of [cut, nothing, noHttp, chunked]) {
    const shop = entry(t, DOCUMENT, { baseUrl: url });
    await t.rejects(shop.call('get_a'), {
      code: 'http_broken',
      effect: undefined,
      message: /^the (connection to|answer of) 127.0.0.1 .* \(.*\): the call can be repeated$/,
    });
    await t.rejects(shop.call('post_a'), {
      effect: 'unknown',
      message: /: whether the call took effect is unknown$/,
    });
  }
  const gone = await api(t);
  gone.server.close();
  await once(gone.server, 'close');
  await t.rejects(entry(t, DOCUMENT, { baseUrl: gone.url }).call('post_a'), {
    code: 'http_unreachable',
    message: '127.0.0.1 cannot be reached (ECONNREFUSED); nothing was sent',
  });
});

t.test('a cancelled call closes its connection, whatever the server does', async (t) => {
  const answers: Parameters<typeof api>[1][] = [
    () => {},
    (response) => response.writeHead(200).flushHeaders(),
    (response) => response.write('half'),
  ];
  for (const answer of answers) {
    const arrived = Promise.withResolvers<{ readonly closed: Promise<unknown> }>();
    const { url } = await api(t, (response, request, raw) => {
      arrived.resolve({ closed: once(response, 'close') });
      answer?.(response, request, raw);
    });
    const turn = new AbortController();
    const call = entry(t, DOCUMENT, { baseUrl: url }).call('post_a', {}, { signal: turn.signal });
    const { closed } = await arrived.promise;
    const reason = new Error('the turn has ended');
    turn.abort(reason);
    await t.rejects(call, reason);
    await closed;
    await t.rejects(entry(t, DOCUMENT, { baseUrl: url }).call('get_a', {}, { signal: turn.signal }), reason);
  }
});

t.test('S-28 no secret of the file is in a result, an error or a log line', async (t) => {
  const headers = {
    Authorization: 'Bearer canary-token-of-shop',
    'X-Api-Key': 'canary-key-0001',
    'X-Other': 'a1b2c3d4e5f6g7h8i9j0k1',
    'X-Version': '2026-11-28',
  };
  const echo = await api(t, (response, { headers, url }) => {
    const status = url.includes('fail') ? 401 : 200;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ headers, url }));
  });
  const results: string[] = [];
  for (const base of ['', '/fail']) {
    const shop = entry(t, DOCUMENT, { baseUrl: `${echo.url}${base}?token=canary-of-query`, headers });
    results.push(textOf(await shop.call('get_a')), JSON.stringify(shop.logs));
  }
  t.notMatch(results.join('\n'), /canary|a1b2c3d4/);
  t.match(results[0], /"authorization":"\[redacted\]".*"x-version":"2026-11-28"/s);
  const broken = await raw(t, (socket) => socket.destroy());
  const shop = entry(t, DOCUMENT, { baseUrl: `${broken}?token=canary-of-query`, headers });
  const error = await shop.call('get_a').catch((error: Error) => error);
  t.notMatch(String((error as Error).message), /canary|token/);
});
