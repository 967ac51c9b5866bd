import { AuthProviders } from '@plugboard/kernel';
import { DEFAULT_SCOPES } from '@plugboard/kernel/contracts';
import { ManualClock, testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { AUDIENCE, newKey, signed, TestIssuer } from './support/issuer.js';

/** The plugin's answers to claims, with these projects in the file. */
async function provider(t: Test, project: object, projects: readonly string[] = ['acme']) {
  const key = await newKey('one', 'EdDSA');
  const issuer = await TestIssuer.start(t, key);
  const clock = new ManualClock();
  const { contributed } = testContext(plugin, {
    config: { issuer: issuer.url, audience: AUDIENCE, project },
    clock,
    check: { entries: (section) => (section === 'projects' ? projects : []) },
  });
  const { signal } = new AbortController();
  const always = { iss: issuer.url, aud: AUDIENCE, exp: clock.now() / 1000 + 60 };
  const authenticate = async (claims: object) =>
    contributed(AuthProviders).authenticate({ bearer: await signed(key, { ...always, ...claims }), headers: {} }, signal);
  /** The same, where the claims are good. */
  const principal = async (claims: object) => {
    const answer = await authenticate(claims);
    if (!answer || !('principal' in answer)) throw new Error(JSON.stringify(answer));
    return answer.principal;
  };
  return { authenticate, principal, always };
}

const BY_MAP = { claim: 'org', map: { o1: 'acme', o2: 'default' } };

t.test('the principal has the subject, scopes and all claims of the token', async (t) => {
  const { principal, always } = await provider(t, BY_MAP);
  const claims = { sub: 'anna', org: 'o1', scope: 'chat admin openid', groups: [{ name: 'staff' }] };
  const anna = await principal(claims);
  t.match(anna.tokenId, /^jwt_[\w-]{22}$/);
  const { tokenId, ...rest } = anna;
  t.strictSame(rest, {
    project: 'acme',
    token: 'jwt:anna',
    scopes: ['chat', 'admin'],
    subject: 'anna',
    claims: { ...always, ...claims },
  });
  t.ok(Object.isFrozen(anna) && Object.isFrozen(anna.claims) && Object.isFrozen(anna.scopes));
  t.ok(Object.isFrozen((anna.claims as typeof claims).groups[0]));
});

t.test('the id of a principal is equal for all tokens of a subject and differs between subjects', async (t) => {
  const { principal } = await provider(t, BY_MAP);
  const other = await provider(t, BY_MAP);
  const id = async (claims: object) => (await principal({ org: 'o1', ...claims })).tokenId;
  const anna = await id({ sub: 'anna', jti: '1' });
  t.equal(await id({ sub: 'anna', jti: '2', scope: 'chat' }), anna);
  t.not(await id({ sub: 'bert' }), anna);
  t.not((await other.principal({ org: 'o1', sub: 'anna' })).tokenId, anna, 'the same name at another issuer is somebody else');
});

t.test('S-32 the displayed name of a token is short and has no control characters, whatever its subject is', async (t) => {
  const { principal } = await provider(t, BY_MAP);
  const name = async (sub: string | undefined) => (await principal({ org: 'o1', sub })).token;
  t.equal(await name('auth0|5f7c8ec7c33c6c004bbafe82'), 'jwt:auth0|5f7c8ec7c33c6c004bbafe82');
  t.equal(await name('a\r\n\u001b[31m\u202eb'), 'jwt:a\ufffd\ufffd\ufffd[31m\ufffdb');
  t.equal(await name('x'.repeat(60)), `jwt:${'x'.repeat(60)}`);
  t.equal(await name('x'.repeat(61)), `jwt:${'x'.repeat(59)}…`);
  t.equal(await name(`${'x'.repeat(58)}😀😀`), `jwt:${'x'.repeat(58)}\ufffd…`);
  const nameless = await principal({ org: 'o1' });
  t.equal(nameless.token, 'jwt');
  t.notOk('subject' in nameless);
});

t.test('S-29 claims with a key __proto__ are left out', async (t) => {
  const { principal } = await provider(t, BY_MAP);
  const { claims } = await principal({
    org: 'o1',
    a: [JSON.parse('{"__proto__":{"admin":true},"b":1}')],
    ['__proto__']: { admin: true },
  });
  t.strictSame(claims?.a, [{ b: 1 }]);
  t.notOk(Object.hasOwn(claims ?? {}, '__proto__'));
  t.equal(Object.assign({}, claims).admin, undefined);
});

t.test('R-041 deeply nested claims are refused', async (t) => {
  const { authenticate } = await provider(t, BY_MAP);
  const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  t.match(await authenticate({ org: 'o1', a: nested(15) }), { principal: { project: 'acme' } });
  for (const levels of [16, 3000]) {
    t.same(await authenticate({ org: 'o1', a: nested(levels) }), { refused: 'its claims are nested too deeply' });
  }
});

t.test('a map gives the projects that it names, `default` included', async (t) => {
  const { authenticate } = await provider(t, BY_MAP);
  t.match(await authenticate({ org: 'o1' }), { principal: { project: 'acme' } });
  t.match(await authenticate({ org: 'o2' }), { principal: { project: 'default' } });
  for (const org of ['acme', 'default', 'o3', 'toString', '__proto__']) {
    t.same(await authenticate({ org }), { refused: 'no project is mapped to the claim' }, org);
  }
});

t.test('a prefix is put before the claim; the result must be under projects and is never `default`', async (t) => {
  const projects = ['tenant-acme', 'acme', 'tenant-', 'default'];
  const { authenticate } = await provider(t, { claim: 'https://example.com/org', prefix: 'tenant-' }, projects);
  const org = (value: unknown) => authenticate({ 'https://example.com/org': value });
  t.match(await org('acme'), { principal: { project: 'tenant-acme' } });
  for (const value of ['tenant-acme', 'umbrella', 'default', '../acme']) {
    t.same(await org(value), { refused: 'the project is not under projects' }, value);
  }
  t.same(await org(''), { refused: 'the claim of the project is missing or not a string' });
  t.same(await org(['acme']), { refused: 'the claim of the project is missing or not a string' });

  const plain = await provider(t, { claim: 'org', prefix: '' }, projects);
  t.match(await plain.authenticate({ org: 'acme' }), { principal: { project: 'acme' } });
  t.same(await plain.authenticate({ org: 'default' }), { refused: 'the project is not under projects' });
  const split = await provider(t, { claim: 'org', prefix: 'def' }, [...projects, 'definitely']);
  t.same(await split.authenticate({ org: 'ault' }), { refused: 'the project is not under projects' });
});

t.test('the scopes are the known ones of `scope` and `scp`, or the default ones without both', async (t) => {
  const { principal } = await provider(t, BY_MAP);
  const scopes = async (claims: object) => (await principal({ org: 'o1', ...claims })).scopes;
  t.same(await scopes({}), DEFAULT_SCOPES);
  t.same(await scopes({ scope: 'sessions:write  chat chat Admin' }), ['chat', 'sessions:write']);
  t.same(await scopes({ scp: ['models:read', 7, 'x'] }), ['models:read']);
  t.same(await scopes({ scp: 'sessions:read' }), ['sessions:read']);
  t.same(await scopes({ scope: ['chat'] }), ['chat'], 'some issuers write a list');
  t.same(await scopes({ scope: 'chat', scp: ['models:read'] }), ['chat', 'models:read']);
  for (const scope of ['', 'openid', 7, {}, null]) t.same(await scopes({ scope }), []);
});
