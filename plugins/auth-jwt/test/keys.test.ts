import { eventually } from '@plugboard/testing';
import t from 'tap';
import { newKey, TestIssuer } from './support/issuer.js';
import { type Reply, world } from './support/server.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A token that lives through the test. */
const FOREVER = { exp: 4_102_444_800 };

function told({ status, body, headers }: Reply) {
  return [status, body.error?.code, headers.get('retry-after')];
}

const UNAVAILABLE = [503, 'auth_unavailable', '5'];

t.test('the keys are fetched once, at the start, and used for ten minutes', async (t) => {
  const { issuer, signed, clock, models } = await world(t);
  t.same(issuer.asked, ['/.well-known/openid-configuration', '/jwks']);
  const token = await signed(FOREVER);
  clock.advance(10 * MINUTE - 1);
  t.equal((await models(token)).status, 200);
  t.equal(issuer.keyCalls, 1);
  clock.advance(1);
  const replies = await Promise.all(Array.from({ length: 20 }, () => models(token)));
  t.same([...new Set(replies.map(({ status }) => status))], [200]);
  t.equal(issuer.keyCalls, 2, 'concurrent requests wait for the same answer');
});

t.test('a flood of tokens with unknown keys causes one request to the issuer in 30 seconds', async (t) => {
  const { issuer, signed, clock, models } = await world(t);
  const flood = async () => {
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, n) => signed({}, { kid: `invented-${n}` })));
    return new Set((await Promise.all(tokens.map(models))).map(({ status }) => status));
  };
  t.same([...(await flood())], [401]);
  t.equal(issuer.keyCalls, 1, 'it was asked at the start');
  for (const calls of [2, 3]) {
    clock.advance(30 * SECOND - 1);
    await flood();
    t.equal(issuer.keyCalls, calls - 1);
    clock.advance(1);
    t.same([...(await flood())], [401]);
    await flood();
    t.equal(issuer.keyCalls, calls);
  }
});

t.test('a new key of the issuer works as soon as a token names it, an old one for at most ten minutes', async (t) => {
  const { issuer, signed, clock, models } = await world(t);
  const old = await signed(FOREVER);
  const key = await newKey('two', 'ES256');
  issuer.use(key);
  clock.advance(30 * SECOND);
  t.equal((await models(await issuer.token())).status, 200);
  t.equal((await models(old)).status, 401);

  issuer.use(await newKey('three'));
  const second = await signed(FOREVER, {}, key);
  clock.advance(10 * MINUTE - 1);
  t.equal((await models(second)).status, 200);
  clock.advance(1);
  t.equal((await models(second)).status, 401);
});

t.test('a token without a key id is checked with the only matching key, and refused if several match', async (t) => {
  const one = await newKey('one');
  const { issuer, signed, clock, models, reason } = await world(t, { key: one });
  t.equal((await models(await signed({}, { kid: undefined }))).status, 200);
  const publicOf = ({ jwk: { kty, n, e, kid, alg, use } }: typeof one) => ({ kty, n, e, kid, alg, use });
  const keys = [publicOf(one), publicOf(await newKey('two'))];
  issuer.answer((_, response) => response.end(JSON.stringify({ keys })));
  clock.advance(10 * MINUTE);
  t.equal(await reason(await signed({}, { kid: undefined })), 'names no key, and several keys of the issuer match');
  t.equal((await models(await signed({}, { kid: undefined }))).status, 401);
  t.equal((await models(await signed())).status, 200);
});

t.test('keys of an issuer that is down are used for 24 hours, and then no token is accepted', async (t) => {
  const { key, issuer, signed, clock, models, server } = await world(t);
  const token = await signed(FOREVER);
  issuer.down();
  clock.advance(10 * MINUTE);
  t.equal((await models(token)).status, 200);
  t.equal((await models(token)).status, 200);
  t.equal(issuer.keyCalls, 2, 'it is asked again, but not for every request');
  t.same(told(await models(await signed({}, { kid: 'two' }))), UNAVAILABLE, 'it may be a new key');
  clock.advance(24 * HOUR - 10 * MINUTE - 1);
  t.equal((await models(token)).status, 200);
  clock.advance(1);
  t.same(told(await models(token)), UNAVAILABLE);
  t.equal((await models('a.b.c')).status, 401, 'a malformed token is still 401');

  issuer.use(key);
  clock.advance(30 * SECOND);
  t.equal((await models(token)).status, 200);
  const lines = server.logs.filter(({ plugin }) => plugin === '@plugboard/auth-jwt');
  t.match(lines, [
    {
      level: 'warn',
      msg: /^the issuer's keys cannot be fetched; tokens are checked with its last keys, for up to 24 hours: /,
    },
    { level: 'info', msg: 'the issuer answers again' },
  ]);
  t.equal(lines.length, 2, 'each is logged once');
});

t.test('the server starts without its issuer and accepts no token until it answers', async (t) => {
  const key = await newKey('one');
  const issuer = await TestIssuer.start(t, key);
  issuer.down();
  const { signed, clock, models, server } = await world(t, { key, issuer });
  t.match(
    server.logs.filter(({ plugin }) => plugin === '@plugboard/auth-jwt'),
    [
      {
        level: 'warn',
        msg: /^the issuer's keys cannot be fetched; callers get 503 until they are: \S+ does not answer \(fetch failed: .+\)$/,
      },
    ],
  );
  t.same(told(await models(await signed())), UNAVAILABLE);
  t.equal((await models('')).status, 401, 'no credential at all is not the issuer’s business');
  issuer.use(key);
  t.same(told(await models(await signed())), UNAVAILABLE);
  clock.advance(5 * SECOND);
  t.equal((await models(await signed())).status, 200);
  t.equal((await models(await issuer.token())).status, 200);
});

t.test('waits five seconds for an answer of the issuer', async (t) => {
  const { issuer, signed, clock, models } = await world(t);
  const token = await signed(FOREVER);
  issuer.answer(() => {}); // and never does
  clock.advance(10 * MINUTE);
  const asked = issuer.asked.length;
  const pending = clock.pending;
  const reply = models(token);
  await eventually(() => issuer.asked.length !== asked);
  t.ok(clock.pending > pending);
  clock.advance(5 * SECOND);
  t.equal((await reply).status, 200, 'with the last keys');
});
