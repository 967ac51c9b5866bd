import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, exportSPKI, SignJWT, UnsecuredJWT } from 'jose';
import t from 'tap';
import { newKey } from './support/issuer.js';
import { names, world } from './support/server.js';

const REFUSAL = {
  error: {
    message: 'The API token is invalid or missing. Send it as "Authorization: Bearer <API_TOKEN>".',
    type: 'invalid_request_error',
    param: null,
    code: 'invalid_api_key',
  },
};

t.test('S-04 a token of the issuer gives access to the agents of its project only', async (t) => {
  const { issuer, signed, models, chat, leaked } = await world(t);
  const token = await issuer.token();
  const listed = await models(token);
  t.equal(listed.status, 200);
  t.same(names(listed), ['helper']);
  t.equal((await chat(token, 'helper')).status, 200);
  t.equal((await chat(token, 'butler')).status, 403);
  t.same(names(await models(await signed({ org_id: 'org_2' }))), ['butler']);
  t.same(names(await models(await signed({ org_id: 'org_3' }))), ['helper', 'butler', 'porter', 'demo']);
  t.same(leaked(), []);
});

for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
  t.test(`a token that the issuer signs by ${algorithm} is taken`, async (t) => {
    const { issuer, models } = await world(t, { key: await newKey('one', algorithm) });
    t.equal((await models(await issuer.token())).status, 200);
  });
}

t.test('the log names the fault of a token by a constant, and the reply does not', async (t) => {
  const { issuer, claims, signed, models, reason, leaked } = await world(t);
  const stranger = await newKey('one');
  const { iat, exp } = claims();
  const good = await signed();
  const [head = '', body = '', signature = ''] = good.split('.');
  const other = await signed({ sub: 'somebody else' });
  const cases: readonly (readonly [string | Promise<string>, string])[] = [
    [signed({ aud: 'https://other.example.com' }), 'for another audience, or none'],
    [signed({ aud: undefined }), 'for another audience, or none'],
    [signed({ aud: { toString: 'x' } }), 'for another audience, or none'],
    [signed({ iss: undefined }), 'another issuer, or none'],
    [signed({ iss: 7 }), 'another issuer, or none'],
    [signed({ iss: 'https://evil.example' }), 'not mine'],
    [signed({ iss: `${issuer.url}/` }), 'not mine'],
    [signed({ exp: iat - 60 }), 'expired'],
    [signed({ exp: undefined }), 'without the claim exp'],
    [signed({ exp: String(exp) }), 'without the claim exp'],
    [signed({ nbf: iat + 62 }), 'not valid yet'],
    [signed({ sub: 7 }), 'the claim sub is not a string'],
    [signed({ org_id: undefined }), 'the claim of the project is missing or not a string'],
    [signed({ org_id: 1 }), 'the claim of the project is missing or not a string'],
    [signed({ org_id: '' }), 'the claim of the project is missing or not a string'],
    [issuer.token({ client: 'stranger' }), 'no project is mapped to the claim'],
    [signed({ org_id: 'constructor' }), 'no project is mapped to the claim'],
    [signed({}, {}, stranger), 'a wrong signature'],
    [`${head}.${other.split('.')[1]}.${signature}`, 'a wrong signature'],
    [`${head}.${body}.`, 'a wrong signature'],
    [`${head}.${body}.${signature.slice(0, -8)}`, 'a wrong signature'],
    [signed({}, { kid: 'two' }), 'signed with a key that the issuer does not publish'],
    [signed({}, { crit: ['x'], x: 1 }).catch(() => critical(body)), 'its header, or the key it names, is not supported'],
    ['a.b.c', 'a malformed JWT'],
    [`${head}.${encoded('["a list"]')}.${signature}`, 'a wrong signature'],
    [`${encoded('{"alg":7}')}.${body}.${signature}`, 'a malformed JWT'],
    [`${good}.${signature}`, 'not mine'],
    [`${head}.${body}`, 'not mine'],
    [`svcp_x.${body}.${signature}`, 'not mine'],
  ];
  for (const [made, why] of cases) {
    const token = await made;
    const reply = await models(token);
    t.equal(reply.status, 401, why);
    t.equal(await reason(token), why);
    t.same(reply.body, REFUSAL);
    t.equal(reply.headers.get('www-authenticate'), 'Bearer');
  }
  t.equal((await models(good)).status, 200);
  t.same(leaked(), [], 'S-28');
});

function encoded(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** A header with an unknown critical extension, which libraries refuse to write. */
function critical(body: string): string {
  return `${encoded('{"alg":"RS256","kid":"one","crit":["x"],"x":1}')}.${body}.AAAA`;
}

t.test('refuses an unsigned token, and one signed with the public key as a secret', async (t) => {
  const { key, claims, models, reason, issuer } = await world(t);
  const unsigned = new UnsecuredJWT({ ...claims() }).encode();
  const symmetric = (secret: string, alg = 'HS256') =>
    new SignJWT({ ...claims() }).setProtectedHeader({ alg, kid: key.id }).sign(Buffer.from(secret));
  const published = await exportSPKI(key.public);
  const tokens = [
    unsigned,
    `${unsigned}AAAA`,
    await symmetric(published),
    await symmetric(published.trim()),
    await symmetric(JSON.stringify(await exportJWK(key.public)), 'HS512'),
  ];
  for (const token of tokens) {
    t.equal((await models(token)).status, 401);
    t.equal(await reason(token), 'signed in a way that is not allowed');
  }
  t.equal(issuer.keyCalls, 1, 'the issuer is not even asked');
});

t.test('refuses algorithms that the file does not name, even if the issuer uses them', async (t) => {
  const yaml = `
transports: { http: { port: 0 }, models: {} }
auth:
  jwt: { issuer: "\${ISSUER}", audience: "\${AUDIENCE}", algorithms: [ES256], project: { claim: org_id, map: { org_1: default } } }
`;
  const { issuer, models, reason } = await world(t, { yaml });
  const token = await issuer.token();
  t.equal((await models(token)).status, 401);
  t.equal(await reason(token), 'signed in a way that is not allowed');
});

t.test('S-06 the address of a key in a token has no effect', async (t) => {
  const evil = await newKey('one');
  let calls = 0;
  const listener = createServer((_, response) => {
    calls++;
    response.end(JSON.stringify({ keys: [{ ...evil.jwk, d: undefined }] }));
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.teardown(() => listener.close());
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/keys`;
  const { signed, models } = await world(t);
  const jwk = await exportJWK(evil.public);
  for (const kid of ['one', 'evil', undefined]) {
    for (const header of [{ jku: url }, { x5u: url }, { jwk }, { jku: url, x5u: url, jwk }]) {
      t.equal((await models(await signed({}, { kid, ...header }, evil))).status, 401);
    }
  }
  t.equal(calls, 0);
  const [, body = ''] = (await signed()).split('.');
  const borrowed = await signed({ iss: url }, { jku: url }, evil);
  t.equal((await models(borrowed)).status, 401, 'and not for an issuer that the token names');
  t.equal((await models(`${borrowed.split('.')[0]}.${body}.${borrowed.split('.')[2]}`)).status, 401);
  t.equal(calls, 0);
});

t.test('accepts a token for 60 seconds after its expiry, because clocks differ', async (t) => {
  const { signed, clock, models } = await world(t);
  const token = await signed({}); // for 600 seconds
  const early = await signed({ nbf: Math.floor(clock.now() / 1000) + 60 });
  t.equal((await models(early)).status, 200);
  clock.advance(659_000 - (clock.now() % 1000));
  t.equal((await models(token)).status, 200);
  clock.advance(1000);
  t.equal((await models(token)).status, 401);
});

t.test('maxTokenAge requires `iat` and refuses tokens that are too old', async (t) => {
  const yaml = `
transports: { http: { port: 0 }, models: {} }
auth:
  jwt: { issuer: "\${ISSUER}", audience: ["\${AUDIENCE}", other], maxTokenAge: 2m, project: { claim: org_id, map: { org_1: default } } }
`;
  const { claims, signed, models, reason } = await world(t, { yaml });
  const { iat } = claims();
  t.equal((await models(await signed({ iat: iat - 180 }))).status, 200, 'the clocks may differ here too');
  t.equal((await models(await signed({ aud: ['x', 'other'] }))).status, 200, 'of several audiences one is enough');
  const where = 'the claim iat is missing, or in the future';
  const cases = [
    [await signed({ iat: iat - 181 }), 'older than maxTokenAge'],
    [await signed({ iat: iat + 61 }), where],
    [await signed({ iat: undefined }), where],
  ] as const;
  for (const [token, why] of cases) {
    t.equal((await models(token)).status, 401);
    t.equal(await reason(token), why);
  }
});

t.test('S-14 the scopes of a token limit its routes; a token without scopes has the default ones', async (t) => {
  const { issuer, signed, models, chat } = await world(t);
  const may = async (token: string) => [(await models(token)).status, (await chat(token, 'helper')).status];
  t.same(await may(await issuer.token({ scope: 'models:read' })), [200, 403]);
  t.same(await may(await issuer.token({ scope: 'chat' })), [403, 200]);
  t.same(await may(await issuer.token({ scope: '' })), [200, 200]);
  t.same(await may(await signed({ scp: ['chat', 'models:read'] })), [200, 200]);
  t.same(await may(await signed({ scp: 'models:read x' })), [200, 403]);
  t.same(await may(await signed({ scope: 'openid profile' })), [403, 403]);
  t.same(await may(await signed({ scope: null })), [403, 403]);
});

t.test('works beside other providers and a second issuer', async (t) => {
  const desk = `
import { AuthProviders, definePlugin } from '@plugboard/kernel';
export default definePlugin({
  name: 'desk', apiVersion: 1, summary: 'Knows two tokens',
  configSchema: { type: 'object', properties: {}, additionalProperties: false },
  register(ctx) {
    const known = ['by-hand-0123456789', 'by.hand.0123456789'];
    const principal = { project: 'umbrella', token: 'desk', scopes: ['models:read'] };
    ctx.contribute(AuthProviders, { authenticate: ({ bearer }) => known.includes(bearer) ? { principal } : undefined });
  },
});
`;
  const jwt = `audience: "\${AUDIENCE}", project: { claim: org_id, prefix: "" }`;
  const yaml = `
transports: { http: { port: 0 }, models: {} }
auth:
  staff: { use: jwt, issuer: "https://staff.example.com", jwksUri: "\${ISSUER}/jwks", ${jwt} }
  jwt: { issuer: "\${ISSUER}", ${jwt} }
  desk: { use: ./desk.mjs }
models: { demo: {} }
agents: { helper: { model: demo, project: acme }, butler: { model: demo, project: umbrella } }
projects: { acme: {}, umbrella: {} }
`;
  const { signed, models, reason } = await world(t, { yaml, files: { 'desk.mjs': desk } });
  t.same(names(await models(await signed({ org_id: 'acme' }))), ['helper']);
  t.same(names(await models(await signed({ org_id: 'acme', iss: 'https://staff.example.com' }))), ['helper']);
  t.same(names(await models('by-hand-0123456789')), ['butler']);
  t.equal((await models('by.hand.0123456789')).status, 401, 'the form decides: the first that knows it has the last word');
  t.equal((await models(await signed({ org_id: 'acme', iss: 'https://third.example.com' }))).status, 401);
  t.equal((await models(await signed({ org_id: 'acme', aud: 'x' }))).status, 401);
  t.equal(await reason('by.hand.0123456789'), 'a malformed JWT');
  t.equal(await reason('by-hand-0123456789'), 'not mine');
  t.equal(await reason(await signed({ org_id: 'acme' }), 'staff'), 'not mine');
});
