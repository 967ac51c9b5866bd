/**
 * Issuers that send more than keys: what is read of them is limited in bytes and time, and no
 * connection stays open.
 */
import type { ServerResponse } from 'node:http';
import { createGzip } from 'node:zlib';
import { AuthProviders } from '@plugboard/kernel';
import { eventually, ManualClock, testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { AUDIENCE, newKey, signed, TestIssuer } from './support/issuer.js';

const { signal } = new AbortController();
const KEY = await newKey('one', 'EdDSA');
const FILL = Buffer.alloc(65_536, 'x');
const MIB = 2 ** 20;
/** Bytes that the system may have taken of what was not read. */
const IN_TRANSIT = 32 * MIB;

type Attack = (response: ServerResponse) => void;

/** An issuer whose keys, or whose configuration with `where`, are this attack. */
async function hostile(t: Test, attack: Attack, where: 'keys' | 'configuration' = 'keys') {
  const issuer = await TestIssuer.start(t, KEY);
  const state = { open: 0, written: 0 };
  issuer.answer((request, response) => {
    if (where === 'keys' && request.url !== '/keys') {
      return response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }));
    }
    const { socket } = response;
    state.open += 1;
    response
      .on('error', () => {})
      .on('close', () => {
        state.open -= 1;
        state.written += socket?.bytesWritten ?? 0;
      });
    return attack(response);
  });
  const clock = new ManualClock();
  const config = { issuer: issuer.url, audience: AUDIENCE, project: { claim: 'org', map: { a: 'default' } } };
  const { lifecycle, contributed, logs } = testContext(plugin, { config, clock, entry: 'auth.jwt' });
  const bearer = await signed(KEY, { iss: issuer.url, aud: AUDIENCE, org: 'a', exp: clock.now() / 1000 + 60 });
  return {
    issuer,
    state,
    clock,
    logs,
    start: async () => lifecycle.start?.(signal),
    ask: async () => contributed(AuthProviders).authenticate({ bearer, headers: {} }, signal),
  };
}

/** Writes until the server has left. */
function endless(to: NodeJS.WritableStream, response: ServerResponse, chunk: string | Uint8Array = FILL): void {
  const more = () => {
    while (!response.destroyed && to.write(chunk));
    if (!response.destroyed) to.once('drain', more);
  };
  more();
}

/** Writes a byte in each turn of the event loop, until the server has left. */
function slow(response: ServerResponse): void {
  if (!response.destroyed) response.write(' ', () => setImmediate(slow, response));
}

const REFUSED: Readonly<Record<string, readonly [attack: Attack, message: RegExp]>> = {
  'a body without end': [(response) => endless(response, response), /answered with more than 1048576 bytes/],
  '100 MB that were announced': [
    (response) => endless(response.writeHead(200, { 'content-length': 100 * MIB }), response),
    /answered with more than 1048576 bytes/,
  ],
  'a compressed body without end': [
    (response) => {
      const gzip = createGzip();
      gzip.pipe(response.writeHead(200, { 'content-encoding': 'gzip' }));
      endless(gzip, response);
    },
    /answered with more than 1048576 bytes/,
  ],
  'an error without end': [(response) => endless(response.writeHead(500), response), /answered with status 500/],
  'a redirect without end': [
    (response) => endless(response.writeHead(307, { location: '/elsewhere' }), response),
    /answered with status 307; redirects are not followed/,
  ],
  'headers without end': [
    (response) => {
      response.socket?.write('HTTP/1.1 200 OK\r\n');
      if (response.socket) endless(response.socket, response, `x-fill: ${'x'.repeat(1_000)}\r\n`);
    },
    /does not answer \(fetch failed: .*overflow/i,
  ],
  'a page of HTML': [(response) => response.end('<html>'.repeat(1_000)), /answered with something other than JSON/],
  'half of a body': [
    (response) => response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy()),
    /does not answer \(terminated/,
  ],
  'a million brackets': [(response) => response.end('['.repeat(MIB)), /answered with something other than JSON/],
  'keys nested too deeply': [
    (response) => response.end(`{"keys":[{"kty":"OKP","x":${'['.repeat(500_000)}${']'.repeat(500_000)}}]}`),
    /answered with something other than set of keys/,
  ],
};

for (const where of ['keys', 'configuration'] as const) {
  for (const [name, [attack, message]] of Object.entries(REFUSED)) {
    if (where === 'configuration' && name.startsWith('keys ')) continue;
    t.test(`${where}: ${name}`, async (t) => {
      const { issuer, state, logs, start, ask } = await hostile(t, attack, where);
      await start();
      t.match(logs, [{ level: 'warn', msg: message }]);
      t.ok(String(logs[0]?.msg).length < 1_000, 'the log does not repeat what was sent');
      await t.rejects(ask(), { name: 'KeysUnavailable', message });
      await eventually(() => state.open === 0);
      t.ok(state.written < IN_TRANSIT, `${state.written} bytes were sent`);
      t.notMatch(issuer.asked, ['/elsewhere']);
    });
  }
}

t.test('an issuer that sends a byte now and then has five seconds for both answers together', async (t) => {
  for (const where of ['keys', 'configuration'] as const) {
    const { state, clock, start, logs } = await hostile(t, slow, where);
    const started = start();
    await eventually(() => state.open === 1);
    clock.advance(4_999);
    t.equal(state.open, 1);
    clock.advance(1);
    await started;
    t.match(logs, [{ level: 'warn', msg: /does not answer \(no answer for 5 s/ }]);
    await eventually(() => state.open === 0);
  }
});

t.test('60,000 keys, which are less than the limit, are used', async (t) => {
  const { kty, crv, x, kid } = KEY.jwk;
  const keys = [...Array(60_000).fill({ kty: 'RSA' }), { kty, crv, x, kid }];
  const { start, ask, logs } = await hostile(t, (response) => response.end(JSON.stringify({ keys })));
  await start();
  t.same(logs, []);
  t.match(await ask(), { principal: { project: 'default' } });
});
