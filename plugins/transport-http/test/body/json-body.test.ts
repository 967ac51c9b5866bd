import { parseJson, SHAPE_LIMITS } from '@plugboard/kernel/contracts';
import { eventually, ManualClock } from '@plugboard/testing';
import fc from 'fast-check';
import t from 'tap';
import { measureJson } from '../../src/body/json-limits.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const NOT_JSON = /^We could not parse the JSON body of your request\./;

t.test("C-020 malformed JSON gets 400 with the reference protocol's text", async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  for (const body of ['{', '{"a":}', "{'a':1}", 'hello', '{}{}', '{"a":"\u0001"}']) {
    const reply = await postJson(`${url}/v1/echo`, body);
    t.equal(reply.status, 400);
    const error = await errorOf(reply);
    t.match(error.message, NOT_JSON);
    t.match(error, { code: null });
  }
});

t.test('C-021 a body that is empty or not a JSON object gets the same 400', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  for (const body of ['[]', '"x"', '42', 'null', 'true', '', ' ']) {
    const reply = await postJson(`${url}/v1/echo`, body);
    t.equal(reply.status, 400, body);
    t.match((await errorOf(reply)).message, NOT_JSON);
  }
  const without = await fetch(`${url}/v1/echo`, { method: 'POST', headers: { 'content-type': 'application/json' } });
  t.equal(without.status, 400);
});

t.test('C-022 a content type other than application/json gets 400', async (t) => {
  let runs = 0;
  const route = { ...echo(), handle: () => ({ status: 200, body: { runs: ++runs } }) };
  const { url, port } = await serve(t, { routes: [route] });
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/ld+json',
    'application/json, text/plain',
    'application/json; charset',
    'json',
    '',
  ];
  for (const type of types) {
    const reply = await postJson(`${url}/v1/echo`, '{}', { 'content-type': type });
    t.equal(reply.status, 400, type);
    t.match(await errorOf(reply), {
      message: /Content-Type: application\/json/,

      code: null,
    });
  }
  const client = await RawClient.open(port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Length: 2', '', '{}');
  t.equal(replyOf(await client.until(/\}\}$/)).status, 400);
  t.equal(runs, 0);
});

t.test('C-023 UTF-8 is accepted with or without charset and byte order mark', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json; charset=utf8; x=y',
    'application/json;',
  ]) {
    const reply = await postJson(`${url}/v1/echo`, '{"a":"é𝄞\u2028"}', { 'content-type': type });
    t.same(await reply.json(), { a: 'é𝄞\u2028' }, type);
  }
  t.same(await (await postJson(`${url}/v1/echo`, '\ufeff{"a":1}')).json(), { a: 1 });
});

t.test('C-024 content encodings and other charsets get 400', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  for (const encoding of ['gzip', 'br', 'deflate', 'nonsense', 'identity, gzip', 'Identity']) {
    const reply = await postJson(`${url}/v1/echo`, '{}', { 'content-encoding': encoding });
    t.equal(reply.status, 400, encoding);
    t.match((await errorOf(reply)).message, /Content-Encoding/);
  }
  t.equal((await postJson(`${url}/v1/echo`, '{}', { 'content-encoding': 'identity' })).status, 200);
  for (const charset of ['latin1', 'utf-16', '""', 'utf-8; charset=utf-7']) {
    const reply = await postJson(`${url}/v1/echo`, '{}', { 'content-type': `application/json; charset=${charset}` });
    t.equal(reply.status, 400, charset);
    t.match((await errorOf(reply)).message, /UTF-8/);
  }
});

t.test('C-025 R-092 a body over the limit gets 413 before the body is read', async (t) => {
  const { port, url } = await serve(t, { routes: [echo()], config: { bodyLimit: '1kb' } });
  const client = await RawClient.open(port);
  client.send(
    'POST /v1/echo HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'Content-Length: 1000000000',
    '',
    '{',
  );
  const { status, headers, body } = replyOf(await client.ended());
  t.equal(status, 413);
  t.equal(headers.connection, 'close');
  t.same(JSON.parse(body), {
    error: {
      message: 'The request body is larger than the limit of 1024 bytes.',

      code: 'request_too_large',
    },
  });
  const exact = JSON.stringify({ a: 'x'.repeat(1024 - 8) });
  t.equal((await postJson(`${url}/v1/echo`, exact)).status, 200);
  t.equal((await postJson(`${url}/v1/echo`, `${exact} `)).status, 413);
});

t.test('C-025 R-092 a chunked body gets 413 as soon as it exceeds the limit', async (t) => {
  const { port } = await serve(t, { routes: [echo()], config: { bodyLimit: '1kb' } });
  const client = await RawClient.open(port);
  client.send(
    'POST /v1/echo HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
    '',
    '400',
    'x'.repeat(1024),
    '',
  );
  client.send('1', 'x', '');
  t.equal(replyOf(await client.ended()).status, 413);
});

t.test('C-025 a caller that sends a large body before reading still receives the 413', async (t) => {
  const served = await serve(t, { routes: [echo()], config: { bodyLimit: '64kb' } });
  for (let n = 0; n < 5; n++) {
    const reply = await postJson(`${served.url}/v1/echo`, 'x'.repeat(30_000_000));
    t.equal(reply.status, 413);
    t.equal((await errorOf(reply)).code, 'request_too_large');
  }
  await served.stop();
  t.match(served.requests()[0], { status: 413, outcome: 'client_error', error_code: 'request_too_large' });
});

t.test('the rest of a refused body is discarded for five seconds, then the connection is closed', async (t) => {
  const clock = new ManualClock();
  const { port } = await serve(t, { routes: [echo()], config: { bodyLimit: '1kb' }, clock });
  const client = await RawClient.open(port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 1000000', '', '{');
  await client.until(/\}\}$/);
  const sendMore = async () => {
    client.send('x'.repeat(1000));
    await new Promise((resolve) => setTimeout(resolve, 5)); // time for a reset to come back
  };
  clock.advance(4_999);
  for (let n = 0; n < 5; n++) await sendMore();
  t.equal(client.failure, undefined);
  clock.advance(1);
  while (client.failure === undefined) await sendMore();
  t.match(client.failure, { code: /ECONNRESET|EPIPE/ });
});

t.test('R-013 a body that does not arrive in time gets a JSON 408', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { routes: [echo()], clock });
  const idle = clock.pending;
  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 10', '', '{');
  await eventually(() => clock.pending > idle);
  clock.advance(29_999);
  client.send('"a"');
  clock.advance(1);
  const { status, headers, body } = replyOf(await client.ended());
  t.equal(status, 408);
  t.equal(headers.connection, 'close');
  t.match(headers['x-request-id'], /^req_/);
  t.equal(JSON.parse(body).error.code, 'request_timeout');
  await served.stop();
  t.match(served.requests(), [{ status: 408, outcome: 'timeout' }]);
});

t.test('a disconnect while sending the body is logged as cancelled by the client', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { routes: [echo()], clock });
  const idle = clock.pending;
  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 10', '', '{');
  await eventually(() => clock.pending > idle);
  client.socket.resetAndDestroy();
  await served.stop();
  t.match(served.requests(), [{ status: 499, outcome: 'cancelled_by_client' }]);
  t.equal(served.logs.filter(({ level }) => level === 'error').length, 0);
});

t.test('the connection stays open after an immediate reply, however the body arrived', async (t) => {
  const { port } = await serve(t, { routes: [echo()] });
  const client = await RawClient.open(port);
  const head = ['POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 7', ''];
  client.send(...head, '{"a":1}');
  await client.until(/{"a":1}$/);
  client.send(...head, '{"a":2]');
  await client.until(/ 400 .*}$/s);
  client.send(...head, '{"a"');
  client.send(':3}');
  t.notMatch(await client.until(/{"a":3}$/), /connection: close/i);
});

t.test('64 levels of nesting are accepted, 65 get 400, and brackets in strings do not count', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
  t.equal((await postJson(`${url}/v1/echo`, nested(64))).status, 200);
  const reply = await postJson(`${url}/v1/echo`, nested(65));
  t.equal(reply.status, 400);
  t.match(await errorOf(reply), { message: /nested too deeply: the limit is 64 levels/, code: null });
  t.equal((await postJson(`${url}/v1/echo`, nested(1_000_000))).status, 400);
  t.equal((await postJson(`${url}/v1/echo`, JSON.stringify({ a: '[{"\\'.repeat(100) }))).status, 200);
});

t.test('S-29 keys __proto__ are removed, however they are escaped, and keys constructor are inert', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const text = '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}';
  t.equal(await (await postJson(`${url}/v1/echo`, text)).text(), '{"constructor":{"prototype":{"admin":true}}}');
  const nested = '{"a":[{"__proto__":{"admin":true},"b":{"\\u005f_proto__":1,"c":2}}]}';
  t.equal(await (await postJson(`${url}/v1/echo`, nested)).text(), '{"a":[{"b":{"c":2}}]}');
  t.equal(Reflect.get({}, 'admin'), undefined);
});

t.test('S-29 a text is parsed without a search for __proto__ only if the result is the same', async (t) => {
  const names = ['__proto__', '\\u005f_proto__', '_\\u005fproto__', '__prot\\u006f__', 'a', 'a\\"', '\\\\', '_', '', 'é'];
  const name = fc.constantFrom(...names);
  const json = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      name.map((text) => `"${text}"`),
      fc.array(tie('value'), { maxLength: 3 }).map((all) => `[${all.join(' ,')}]`),
      fc
        .array(fc.tuple(name, tie('value')), { maxLength: 3 })
        .map((all) => `{${all.map(([key, one]) => `"${key}" :${one}`).join()}}`),
    ),
  })).value;
  let plain = 0;
  const holds = () =>
    fc.assert(
      fc.property(json, fc.constantFrom('', '\ufeff', ' '), (value, before) => {
        const text = `${before}{"x":${value}}`;
        if (!measureJson(text, SHAPE_LIMITS).isPlain) return true;
        plain++;
        return JSON.stringify(JSON.parse(text)) === JSON.stringify(parseJson(text));
      }),
    );
  t.doesNotThrow(holds);
  t.ok(plain > 0);
});

t.test('S-35 the scanner counts levels, values and keys as the parsed value has them', async (t) => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
  const valuesOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Object.values(value).reduce((sum, one) => sum + valuesOf(one), 0) : 1;
  const keysOf = (value: unknown): number =>
    typeof value === 'object' && value !== null
      ? Math.max(Array.isArray(value) ? 0 : Object.keys(value).length, ...Object.values(value).map(keysOf))
      : 0;
  const allKeysOf = (value: unknown): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum, one) => sum + allKeysOf(one), Array.isArray(value) ? 0 : Object.keys(value).length)
      : 0;
  const holds = () =>
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.string(), fc.nat(3), (value, key, indent) => {
        const whole = { [key]: value, '\\"[': '\\' };
        const depth = depthOf(whole);
        const text = JSON.stringify(whole, undefined, indent);
        const limits = { depth, values: valuesOf(whole), keys: keysOf(whole) };
        const exceeded = (changed: object) => measureJson(text, { ...limits, ...changed }).exceeded;
        const { values, keys, exceeded: none } = measureJson(text, limits);
        return (
          none === undefined &&
          values === limits.values &&
          keys === allKeysOf(whole) &&
          exceeded({ depth: depth - 1 }) === 'depth' &&
          exceeded({ values: limits.values - 1 }) === 'values' &&
          exceeded({ keys: limits.keys - 1 }) === 'keys'
        );
      }),
    );
  t.doesNotThrow(holds);
});

t.test('S-35 more than 200,000 values, or 10,000 keys in one object, get 400', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const values = (count: number) => `{"a":[${'{},'.repeat(count - 3)}1]}`;
  const keys = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join()}}`;
  for (const body of [values(200_000), keys(10_000), JSON.stringify({ a: '1,'.repeat(300_000) })]) {
    t.equal((await postJson(`${url}/v1/echo`, body)).status, 200);
  }
  for (const [body, code] of [
    [values(200_001), 'too_many_values'],
    [keys(10_001), 'too_many_keys'],
  ] as const) {
    const reply = await postJson(`${url}/v1/echo`, body);
    t.equal(reply.status, 400);
    t.match(await errorOf(reply), { code });
  }
});

t.test('S-36 a body that exceeds the share of its caller gets 413, one that exceeds what is left 503', async (t) => {
  const { url, port, memoryUsed } = await serve(t, { routes: [echo()], config: { bodyLimit: '4mb' }, memory: 4 * 1024 * 1024 });
  const send = (length: number) => postJson(`${url}/v1/echo`, JSON.stringify({ a: 'x'.repeat(length) }));
  const large = await send(800_000);
  t.equal(large.status, 413);
  t.match(await errorOf(large), { message: /`limits\.memory`/, code: 'request_too_large' });
  t.equal((await send(500_000)).status, 200);

  const holding = await RawClient.open(port);
  holding.send('POST /v1/echo HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 500000', '', '');
  holding.socket.write(Buffer.alloc(400_000, 0x20));
  await eventually(() => memoryUsed() >= 3 * 400_000); // until then a large request could take its place
  for (let n = 0; n < 5; n++) t.equal((await send(20_000)).status, 200, 'small requests pass');
  const refused = await send(500_000);
  t.equal(refused.status, 503);
  t.equal(refused.headers.get('retry-after'), '5');
  t.match(await errorOf(refused), { message: /`limits\.memory`/, code: 'overloaded' });
  holding.socket.destroy();
  t.ok(await eventually(async () => (await send(500_000)).status === 200), 'the memory is free again');
});

t.test('arbitrary bytes get 200 or 400', async (t) => {
  const { url } = await serve(t, { routes: [echo()] });
  const bytes = fc.oneof(
    fc.json().map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
    fc.tuple(fc.json(), fc.nat(), fc.nat(255)).map(([text, at, byte]) => {
      const buffer = Buffer.from(`{"a":${text}}`);
      buffer[at % buffer.length] = byte;
      return buffer;
    }),
  );
  const holds = fc.assert(
    fc.asyncProperty(bytes, async (body) => {
      const reply = await fetch(`${url}/v1/echo`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: new Uint8Array(body),
      });
      return reply.status === 200
        ? (await reply.text()) !== ''
        : reply.status === 400 && NOT_JSON.test((await errorOf(reply)).message);
    }),
    { numRuns: 300 },
  );
  await t.resolves(holds);
});

t.test('a caller that leaves while its body arrives ends the request and everything around it', async (t) => {
  let runs = 0;
  let failure: unknown;
  const served = await serve(t, {
    routes: [{ ...echo(), handle: () => ({ status: 200, body: { runs: ++runs } }) }],
    middleware: [
      (_ctx, next) =>
        next().catch((error) => {
          failure = error;
          throw error;
        }),
    ],
  });
  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 100', '', '{"a"');
  await eventually(() => served.memoryUsed() > 0); // its first bytes are read
  client.socket.resetAndDestroy();
  t.match(await eventually(() => failure), { message: 'the caller disconnected' });
  t.equal(runs, 0);
  t.match(served.requests(), [{ status: 499 }]);
  t.same(
    served.logs.filter(({ level }) => level === 'error'),
    [],
  );
});
