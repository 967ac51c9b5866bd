import type { AuthProvider } from '@plugboard/kernel';
import t from 'tap';
import { type Asked, ask } from '../support/ask.js';
import { echo, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const ORIGIN = 'https://app.example.org';
const PAGE = { origin: ORIGIN, authorization: 'Bearer good' };
const knows: AuthProvider = {
  authenticate: ({ bearer }) => (bearer === 'good' ? { principal: { project: 'acme', scopes: [] } } : undefined),
};
const routes = [
  get('/v1/thing', () => ({ status: 200, body: {} })),
  get('/v1/broken', () => {
    throw new Error('broken');
  }),
  get('/v1/stream', () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: said() })),
  get('/v1/admin', () => ({ status: 200, body: {} }), ['admin']),
  get('/probe', () => ({ status: 200, body: {} }), 'public'),
  echo(),
];

async function* said() {
  yield 'data: [DONE]\n\n';
}

function preflight(headers: Readonly<Record<string, string>> = {}): Asked {
  return { method: 'OPTIONS', headers: { origin: ORIGIN, 'access-control-request-method': 'POST', ...headers } };
}

t.test('C-147 a preflight of a listed origin needs no token', async (t) => {
  const { url } = await serve(t, { routes, providers: [knows], config: { origins: [ORIGIN] } });
  const asked = 'authorization,content-type,x-stainless-lang, X-Session-Id';
  for (const path of ['/v1/echo', '/v1/thing', '/v1/nowhere', '/v1', '/probe']) {
    const { status, headers, text } = await ask(url + path, preflight({ 'access-control-request-headers': asked }));
    t.equal(status, 204, path);
    t.equal(text, '');
    t.match(headers, {
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'authorization, content-type, x-stainless-lang, x-session-id',
      'access-control-max-age': '600',
      vary: 'Origin',
    });
    t.notOk('access-control-allow-credentials' in headers);
  }
});

t.test('C-147 a preflight echoes valid header names only, 100 at most', async (t) => {
  const { url } = await serve(t, { routes, config: { origins: [ORIGIN] } });
  const allowed = async (asked: string) =>
    (await ask(`${url}/v1/echo`, preflight({ 'access-control-request-headers': asked }))).headers['access-control-allow-headers'];
  t.equal(await allowed('x-a, x b, "x", , x:y, ä, x-c'), 'x-a, x-c');
  t.equal(await allowed('"'), undefined);
  t.equal(await allowed(`x-a, ${'y'.repeat(65)}`), 'x-a');
  const many = Array.from({ length: 300 }, (_, n) => `x-${n}`);
  t.equal(await allowed(many.join(',')), many.slice(0, 100).join(', '));
  t.notOk('access-control-allow-headers' in (await ask(`${url}/v1/echo`, preflight())).headers);
});

t.test('C-147 OPTIONS without preflight headers is answered as before', async (t) => {
  const { url } = await serve(t, { routes, providers: [knows], config: { origins: [ORIGIN] } });
  t.equal((await ask(`${url}/v1/echo`, { method: 'OPTIONS', headers: { origin: ORIGIN } })).status, 401);
  t.equal((await ask(`${url}/v1/echo`, preflight({ origin: 'https://evil.example' }))).status, 401);
  t.equal((await ask(`${url}/v1/echo`, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST' } })).status, 401);
  const plain = await ask(`${url}/v1/echo`, { method: 'OPTIONS', headers: PAGE });
  t.equal(plain.status, 204);
  t.equal(plain.headers.allow, 'POST, OPTIONS');
});

t.test('C-148 a page of a listed origin can read every response', async (t) => {
  const { url } = await serve(t, {
    routes,
    providers: [knows],
    config: { origins: ['https://other.example', ORIGIN], bodyLimit: '1kb' },
  });
  const json = { ...PAGE, 'content-type': 'application/json' };
  for (const [status, path, asked] of [
    [200, '/v1/thing', { headers: PAGE }],
    [200, '/v1/stream', { headers: PAGE }],
    [200, '/probe', { headers: { origin: ORIGIN } }],
    [400, '/v1/echo', { method: 'POST', headers: json, body: 'no JSON' }],
    [401, '/v1/thing', { headers: { origin: ORIGIN } }],
    [403, '/v1/admin', { headers: PAGE }],
    [404, '/v1/nowhere', { headers: PAGE }],
    [405, '/v1/thing', { method: 'DELETE', headers: PAGE }],
    [413, '/v1/echo', { method: 'POST', headers: json, body: 'x'.repeat(2_000) }],
    [500, '/v1/broken', { headers: PAGE }],
  ] as const) {
    const reply = await ask(url + path, asked);
    t.equal(reply.status, status, path);
    t.equal(reply.headers['access-control-allow-origin'], ORIGIN);
    t.equal(reply.headers.vary, 'Origin');
    t.equal(reply.headers['access-control-expose-headers'], '*');
    t.notOk('access-control-allow-credentials' in reply.headers);
  }
});

t.test('C-148 Vary: Origin is set for unlisted origins too', async (t) => {
  const { url } = await serve(t, { routes, providers: [knows], config: { origins: [ORIGIN] } });
  const { authorization } = PAGE;
  const elsewhere = { origin: 'https://evil.example' };
  for (const headers of [{ authorization }, { authorization, ...elsewhere }] satisfies Asked['headers'][]) {
    const reply = await ask(`${url}/v1/thing`, { headers });
    t.equal(reply.headers.vary, 'Origin');
    t.notOk('access-control-allow-origin' in reply.headers);
    t.notOk('access-control-expose-headers' in reply.headers);
  }
});

t.test('C-149 origins may be * if credentials are required', async (t) => {
  const { url } = await serve(t, { routes, providers: [knows], config: { origins: ['*'] } });
  for (const origin of ['https://any.example', 'null', 'app://one']) {
    t.match(await ask(`${url}/v1/thing`, { headers: { ...PAGE, origin } }), {
      status: 200,
      headers: { 'access-control-allow-origin': '*', vary: 'Origin' },
    });
    t.equal((await ask(`${url}/v1/thing`, preflight({ origin }))).status, 204);
  }
  t.notOk('access-control-allow-origin' in (await ask(`${url}/v1/thing`, { headers: { authorization: 'Bearer good' } })).headers);
});
