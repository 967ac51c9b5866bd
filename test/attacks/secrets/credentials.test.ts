import t from 'tap';
import { startWithAllRoutes, TOKEN, tokensOf } from '../support/all-routes.js';
import { everyRoute, requiresToken } from '../support/every-route.js';
import { decisionOf, type Pair, sendRaw } from '../support/send-raw.js';

const server = await startWithAllRoutes(t);
const routes = everyRoute(server);
const bearer = (token: string): Pair => ['authorization', `Bearer ${token}`];

/** Everywhere else that a token is sent to some server or other: as headers, or in the query. */
const ELSEWHERE: Readonly<Record<string, (token: string) => { readonly headers?: readonly Pair[]; readonly query?: string }>> = {
  'Authorization without a scheme': (token) => ({ headers: [['authorization', token]] }),
  'Authorization: Token': (token) => ({ headers: [['authorization', `Token ${token}`]] }),
  'basic authentication, as the password': (token) => ({
    headers: [['authorization', `Basic ${Buffer.from(`api:${token}`).toString('base64')}`]],
  }),
  'basic authentication, as the user': (token) => ({
    headers: [['authorization', `Basic ${Buffer.from(`${token}:`).toString('base64')}`]],
  }),
  'Proxy-Authorization': (token) => ({ headers: [['proxy-authorization', `Bearer ${token}`]] }),
  'X-Forwarded-Authorization': (token) => ({ headers: [['x-forwarded-authorization', `Bearer ${token}`]] }),
  'x-api-key': (token) => ({ headers: [['x-api-key', token]] }),
  'api-key': (token) => ({ headers: [['api-key', token]] }),
  'x-auth-token': (token) => ({ headers: [['x-auth-token', token]] }),
  'x-goog-api-key': (token) => ({ headers: [['x-goog-api-key', token]] }),
  'a cookie': (token) => ({ headers: [['cookie', `token=${token}; session=${token}; authorization=Bearer%20${token}`]] }),
  'Sec-WebSocket-Protocol': (token) => ({
    headers: [['sec-websocket-protocol', `realtime, openai-insecure-api-key.${token}, bearer.${token}`]],
  }),
  '?api_key': (token) => ({ query: `?api_key=${token}` }),
  '?token': (token) => ({ query: `?token=${token}` }),
  '?access_token': (token) => ({ query: `?access_token=${token}` }),
  '?key': (token) => ({ query: `?key=${token}` }),
  '?authorization': (token) => ({ query: `?authorization=Bearer%20${token}` }),
};

t.test('the server has routes with and without authentication', async (t) => {
  t.ok(routes.length >= 16);
  t.ok(routes.filter(requiresToken).length >= 13);
});

for (const call of routes) {
  const isPublic = !requiresToken(call);
  const { strong, weak } = tokensOf(call.access);

  t.test(`S-02 ${call.route}: a token is accepted only as Authorization: Bearer, or in the header of the route`, async (t) => {
    const anonymous = await sendRaw(server, call);
    t.equal(decisionOf(anonymous), isPublic ? 'let in' : 'unknown');
    const allowed = await sendRaw(server, call, [bearer(strong)]);
    t.equal(decisionOf(allowed), 'let in');
    for (const scheme of ['bearer', 'BEARER', 'Bearer ', ' Bearer']) {
      t.same(await sendRaw(server, call, [['authorization', `${scheme} ${strong}`]]), allowed);
    }
    for (const [way, carrying] of Object.entries(ELSEWHERE)) {
      const { headers, query = '' } = carrying(strong);
      const expected = way === call.tokenHeader ? allowed : anonymous;
      t.same(await sendRaw(server, { ...call, path: call.path + query }, headers), expected, way);
    }
  });

  t.test(`S-02 ${call.route}: a second credential of any kind does not change the result of the first`, async (t) => {
    const alone = await sendRaw(server, call, [bearer(weak)]);
    const needsNoScope = isPublic || (Array.isArray(call.access) && call.access.length === 0);
    t.equal(decisionOf(alone), needsNoScope ? 'let in' : 'forbidden');
    const wrong = await sendRaw(server, call, [bearer('not-a-token-of-anybody')]);
    const allowed = await sendRaw(server, call, [bearer(strong)]);
    for (const [way, carrying] of Object.entries(ELSEWHERE)) {
      const { headers = [], query = '' } = carrying(strong);
      if (headers.some(([name]) => name === 'authorization')) continue;
      if (way === call.tokenHeader) {
        const anonymous = await sendRaw(server, call);
        t.same(await sendRaw(server, call, [bearer(weak), ...headers]), anonymous, 'two tokens that differ are refused');
        continue;
      }
      const asked = { ...call, path: call.path + query };
      t.same(await sendRaw(server, asked, [bearer(weak), ...headers]), alone, `a token that may less, and ${way}`);
      t.same(await sendRaw(server, asked, [...headers, bearer('not-a-token-of-anybody')]), wrong, `a wrong token, and ${way}`);
      const { headers: odd = [], query: oddQuery = '' } = carrying('not-a-token-of-anybody');
      const right = await sendRaw(server, { ...call, path: call.path + oddQuery }, [...odd, bearer(strong)]);
      t.same({ ...right, headers: {} }, { ...allowed, headers: {} }, `the right token, and a wrong one as ${way}`);
    }
  });

  t.test(`S-02 ${call.route}: two Authorization headers are refused, in any order and even if equal`, async (t) => {
    const anonymous = await sendRaw(server, call);
    for (const pair of [
      [bearer(strong), bearer(strong)],
      [bearer(strong), bearer(weak)],
      [bearer('not-a-token-of-anybody'), bearer(strong)],
      [bearer(strong), ['Authorization', '']],
      [['AUTHORIZATION', `Basic ${strong}`], bearer(strong)],
    ] as const) {
      t.same(await sendRaw(server, call, pair), anonymous);
    }
    t.same(await sendRaw(server, call, [['authorization', `Bearer ${strong}, Bearer ${strong}`]]), anonymous);
  });
}

t.test('S-02 unknown paths need a token by the same rules', async (t) => {
  for (const path of ['/v1', '/v1/', '/v1/nothing', '/v1/chat/completions/more', '/v1//models', '/v1/%6dodels']) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
      const call = { method, path, takesJson: false };
      const anonymous = await sendRaw(server, call);
      t.equal(decisionOf(anonymous), 'unknown', `${method} ${path}`);
      t.equal(decisionOf(await sendRaw(server, call, [bearer(TOKEN)])), 'let in', `${method} ${path}`);
      for (const carrying of Object.values(ELSEWHERE)) {
        const { headers, query = '' } = carrying(TOKEN);
        t.same(await sendRaw(server, { ...call, path: path + query }, headers), anonymous);
      }
    }
  }
});

t.test('S-02 an open server ignores credentials, however they are sent', async (t) => {
  const open = await startWithAllRoutes(t, { auth: '' });
  for (const call of everyRoute(open)) {
    const anonymous = await sendRaw(open, call);
    t.equal(decisionOf(anonymous), 'let in', call.route);
    for (const [way, carrying] of [
      ...Object.entries(ELSEWHERE),
      ['bearer', (token: string) => ({ headers: [bearer(token)] })] as const,
    ]) {
      const { headers } = carrying(TOKEN);
      if (headers) t.same(await sendRaw(open, call, headers), anonymous, way);
    }
  }
});
