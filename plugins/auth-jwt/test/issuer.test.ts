import type { IncomingMessage, ServerResponse } from 'node:http';
import { AuthProviders, ConfigFault } from '@plugboard/kernel';
import { eventually, ManualClock, testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { AUDIENCE, newKey, signed, TestIssuer } from './support/issuer.js';

const { signal } = new AbortController();

/**
 * The plugin as a server would have it, before its start. `answers` are the issuer's, by their
 * paths.
 */
async function entry(t: Test, answers: (url: string) => Readonly<Record<string, Answer>>, config: object = {}) {
  const key = await newKey('one', 'EdDSA');
  const issuer = await TestIssuer.start(t, key);
  const known = answers(issuer.url);
  issuer.answer((request, response) => (known[request.url ?? ''] ?? missing)(response, request));
  const clock = new ManualClock();
  const { lifecycle, contributed, logs } = testContext(plugin, {
    config: { issuer: issuer.url, audience: AUDIENCE, project: { claim: 'org', map: { a: 'default' } }, ...config },
    clock,
    entry: 'auth.jwt',
  });
  const claims = { iss: issuer.url, aud: AUDIENCE, org: 'a', exp: clock.now() / 1000 + 60 };
  return {
    issuer,
    key,
    clock,
    logs,
    lifecycle,
    start: async () => lifecycle.start?.(signal),
    ask: async () => contributed(AuthProviders).authenticate({ bearer: await signed(key, claims), headers: {} }, signal),
  };
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

const missing: Answer = (response) => response.writeHead(404).end();
const json =
  (value: unknown): Answer =>
  (response) =>
    response.end(JSON.stringify(value));

const DISCOVERY = '/.well-known/openid-configuration';

t.test('an invalid answer of the issuer is logged, and no token is accepted', async (t) => {
  const cases: readonly (readonly [string, (url: string) => Readonly<Record<string, Answer>>, RegExp])[] = [
    ['a status', () => ({}), /\/openid-configuration answered with status 404$/],
    [
      'a redirect',
      (url) => ({
        [DISCOVERY]: (response) => response.writeHead(302, { location: `${url}/elsewhere` }).end(),
        '/elsewhere': json({ issuer: url, jwks_uri: `${url}/keys` }),
      }),
      /answered with status 302; redirects are not followed$/,
    ],
    ['no JSON', () => ({ [DISCOVERY]: (response) => response.end('<html>') }), /answered with something other than JSON$/],
    ['no object', () => ({ [DISCOVERY]: json(null) }), /answered with something other than OpenID configuration$/],
    ['no keys', (url) => ({ [DISCOVERY]: json({ issuer: url }) }), /the jwks_uri of \S+ is missing$/],
    [
      'keys elsewhere, over http',
      (url) => ({ [DISCOVERY]: json({ issuer: url, jwks_uri: 'http://keys.example.com/' }) }),
      /the jwks_uri of \S+ must be https, except on this machine/,
    ],
    [
      'no set of keys',
      (url) => ({
        [DISCOVERY]: json({ issuer: url, jwks_uri: `${url}/keys?key=secret` }),
        '/keys?key=secret': json({ keys: 'x' }),
      }),
      /\/keys answered with something other than set of keys \(JWKS\)$/,
    ],
    [
      'more than a mebibyte',
      (url) => ({
        [DISCOVERY]: json({ issuer: url, jwks_uri: `${url}/keys` }),
        '/keys': json({ keys: [], x: 'x'.repeat(2 ** 20) }),
      }),
      /\/keys answered with more than 1048576 bytes$/,
    ],
  ];
  for (const [name, answers, message] of cases) {
    const { start, ask, logs, issuer } = await entry(t, answers);
    await start();
    t.match(logs, [{ level: 'warn', msg: message }], name);
    await t.rejects(ask(), { name: 'KeysUnavailable', message }, name);
    t.notMatch(issuer.asked, ['/elsewhere']);
    t.notMatch(JSON.stringify(logs), 'secret');
  }
});

t.test('an endless answer is cut at the limit', async (t) => {
  let sent = 0;
  const { start, ask } = await entry(t, (url) => ({
    [DISCOVERY]: json({ issuer: url, jwks_uri: `${url}/keys` }),
    '/keys': (response) => {
      const more = () => {
        if (response.destroyed) return;
        sent += 65536;
        response.write('x'.repeat(65536), () => setImmediate(more));
      };
      more();
    },
  }));
  await start();
  await t.rejects(ask(), { message: /more than 1048576 bytes/ });
  t.ok(sent < 2 ** 25, 'it is not read to its end');
});

t.test('an issuer with another name is a configuration error', async (t) => {
  for (const named of ['https://other.example.com', undefined]) {
    const { start } = await entry(t, () => ({ [DISCOVERY]: json({ issuer: named, jwks_uri: 'https://x.example.com' }) }));
    const error = await start().catch((error: unknown) => error);
    t.ok(error instanceof ConfigFault);
    t.match(error, {
      problems: [
        { path: ['issuer'], message: /^does not match the issuer of \S+, which is (".+"|none): use exactly this name$/ },
      ],
    });
  }
});

t.test('with jwksUri only that address is requested', async (t) => {
  const key = await newKey('one');
  const issuer = await TestIssuer.start(t, key);
  const clock = new ManualClock();
  const { lifecycle, contributed } = testContext(plugin, {
    config: { issuer: 'us', audience: 'them', jwksUri: `${issuer.url}/jwks`, project: { claim: 'org', map: { a: 'default' } } },
    clock,
  });
  await lifecycle.start?.(signal);
  const token = await signed(key, { iss: 'us', aud: 'them', org: 'a', exp: clock.now() / 1000 + 60 });
  t.match(await contributed(AuthProviders).authenticate({ bearer: token, headers: {} }, signal), {
    principal: { project: 'default' },
  });
  t.same(issuer.asked, ['/jwks']);
});

t.test('finds keys that have moved', async (t) => {
  let place = '/keys';
  const { start, ask, clock, key, issuer } = await entry(t, () => ({}));
  const { d: _, ...jwk } = key.jwk;
  issuer.answer((request, response) => {
    if (request.url === DISCOVERY) json({ issuer: issuer.url, jwks_uri: issuer.url + place })(response, request);
    else if (request.url === place) json({ keys: [jwk] })(response, request);
    else missing(response, request);
  });
  await start();
  t.match(await ask(), { principal: { project: 'default' } });
  place = '/keys/2';
  clock.advance(600_000);
  t.same(await ask(), { refused: 'expired', expired: true });
  clock.advance(30_000);
  await ask();
  t.same(issuer.asked, [DISCOVERY, '/keys', '/keys', DISCOVERY, '/keys/2']);
});

t.test('a published private key, or an invalid key, is not used', async (t) => {
  const { start, ask, key, issuer } = await entry(t, () => ({}));
  for (const jwk of [key.jwk, { ...key.jwk, d: undefined, x: 'AAAA' }]) {
    issuer.answer((request, response) => {
      if (request.url === DISCOVERY) json({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` })(response, request);
      else json({ keys: [jwk] })(response, request);
    });
    await start();
    t.same(await ask(), { refused: 'its header, or the key it names, is not supported' });
  }
});

t.test('a running request is aborted when the server stops', async (t) => {
  const { start, ask, lifecycle, issuer, logs } = await entry(t, () => ({ [DISCOVERY]: () => {} }));
  const started = start();
  await eventually(() => issuer.asked.length > 0);
  await lifecycle.stop?.(signal);
  await started;
  t.same(logs, [], 'nothing is logged');
  await t.rejects(ask(), { name: 'KeysUnavailable' });
});

t.test('a running request is aborted when the start is aborted', async (t) => {
  const { ask, lifecycle, issuer } = await entry(t, () => ({ [DISCOVERY]: () => {} }));
  const limit = new AbortController();
  const started = lifecycle.start?.(limit.signal);
  await eventually(() => issuer.asked.length > 0);
  limit.abort();
  await started;
  await t.rejects(ask(), { name: 'KeysUnavailable' }, 'and no caller is accepted');
});

t.test('no token is recognised before the start', async (t) => {
  const { ask, issuer } = await entry(t, () => ({}));
  await t.rejects(ask(), { name: 'KeysUnavailable' });
  t.same(issuer.asked, [DISCOVERY], 'but the issuer is queried');
});
