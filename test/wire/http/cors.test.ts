import t from 'tap';
import { rawExchange } from '../../support/raw-exchange.js';
import { ASSISTANT, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer, TOKENS, tokens } from '../../support/tokens.js';

const CHAT = '/v1/chat/completions';
const ORIGIN = 'https://app.example.org';
const LISTED = TRANSPORTS.replace('port: 0', `port: 0, origins: ["${ORIGIN}"]`);

/** What openai-node sends from a page. */
const STAINLESS = ['lang', 'package-version', 'os', 'arch', 'runtime', 'runtime-version', 'retry-count', 'timeout'].map(
  (name) => `x-stainless-${name}`,
);
const ASKED = ['authorization', 'content-type', ...STAINLESS, 'x-session-id', 'idempotency-key'].join(',');

const closed = await TestServer.start(t, LISTED + ASSISTANT + TOKENS, { files: tokens });
const page = { origin: ORIGIN, ...bearer('token-of-default') };

function preflight(server: TestServer, path: string, origin = ORIGIN) {
  return rawExchange(
    server.port,
    `OPTIONS ${path} HTTP/1.1`,
    'Host: localhost',
    `Origin: ${origin}`,
    'Access-Control-Request-Method: POST',
    `Access-Control-Request-Headers: ${ASKED}`,
    '',
    '',
  );
}

t.test('C-147 a preflight from a listed origin needs no token and allows the headers that clients send', async (t) => {
  for (const path of [CHAT, '/v1/models', '/v1/models/assistant', '/v1/nowhere']) {
    const { status, headers, body } = await preflight(closed, path);
    t.equal(status, 204, path);
    t.equal(body, '');
    t.match(headers, { 'access-control-allow-origin': ORIGIN, vary: 'Origin', 'access-control-allow-methods': /\bPOST\b/ });
    t.strictSame(headers['access-control-allow-headers']?.split(', '), ASKED.split(','));
    t.notOk('access-control-allow-credentials' in headers);
  }
});

t.test('C-148 a page of a listed origin can read answers, streams and errors', async (t) => {
  closed.models.enqueue({}, {}, { status: 400 });
  for (const [status, answer] of [
    [200, await closed.chat(saying('Hi'), page)],
    [200, await closed.stream(saying('Hi'), page)],
    [502, await closed.chat(saying('the model server refuses'), page)],
    [200, await closed.get('/v1/models', page)],
    [200, await closed.get('/health', { origin: ORIGIN })],
    [400, await closed.chat('{', page)],
    [401, await closed.chat(saying('Hi'), { origin: ORIGIN })],
    [403, await closed.chat(saying('Hi'), { origin: ORIGIN, ...bearer('token-of-acme') })],
    [404, await closed.get('/v1/nowhere', page)],
    [405, await closed.get(CHAT, page)],
  ] as const) {
    t.equal(answer.status, status);
    t.equal(answer.headers.get('access-control-allow-origin'), ORIGIN);
    t.equal(answer.headers.get('vary'), 'Origin');
    t.equal(answer.headers.get('access-control-expose-headers'), '*');
  }
});

t.test('C-149 a page of another origin can read nothing, open server or not', async (t) => {
  const open = await TestServer.start(t, LISTED + ASSISTANT);
  const silent = await TestServer.start(t);
  for (const [server, status] of [
    [closed, 401],
    [open, 403],
    [silent, 403],
  ] as const) {
    for (const origin of ['https://evil.example', 'null', `${ORIGIN}:8443`, ORIGIN.replace('https', 'http')]) {
      const { status: answered, headers } = await preflight(server, CHAT, origin);
      t.equal(answered, status, origin);
      t.notOk(Object.keys(headers).some((name) => name.startsWith('access-control-')));
    }
  }
  const served = await closed.get('/v1/models', { ...page, origin: 'https://evil.example' });
  t.equal(served.status, 200);
  t.notOk(served.headers.has('access-control-allow-origin'));
  t.equal((await preflight(silent, CHAT)).status, 403);
});

t.test('C-149 a request without a preflight starts no turn', async (t) => {
  const open = await TestServer.start(t);
  const body = JSON.stringify(saying('Hi'));
  for (const type of [
    'text/plain',
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
  ]) {
    for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${open.port}`]) {
      const reply = await open.chat(body, { origin, 'content-type': type });
      t.equal(reply.status, origin.startsWith('http://127') ? 400 : 403, `${type} from ${origin}`);
    }
  }
  t.equal((await open.chat(body, { origin: 'https://evil.example' })).status, 403, 'and not with JSON');
  t.equal(open.models.requests.length, 0);
});
