import type { AuthProvider, Credentials } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const REFUSAL = {
  error: {
    message: 'The API token is invalid or missing. Send it as "Authorization: Bearer <API_TOKEN>".',

    code: 'unauthorized',
  },
};

const whoami = get('/v1/whoami', ({ principal }) => ({ status: 200, body: principal }));
const ACME = { principal: { project: 'acme', token: 'ci', tokenId: 'tok_1', scopes: ['chat'] } } as const;

/** Knows one token, and keeps what it was asked. */
class OneToken implements AuthProvider {
  readonly asked: Pick<Credentials, 'bearer'>[] = [];
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  authenticate(credentials: Credentials) {
    this.asked.push({ bearer: credentials.bearer });
    return credentials.bearer === this.#token ? ACME : undefined;
  }
}

t.test('C-140 an open server ignores credentials', async (t) => {
  const { url } = await serve(t, { routes: [whoami] });
  for (const authorization of [undefined, 'Bearer sk-test', 'Bearer', 'Basic eDp5', 'x'.repeat(10_000)]) {
    const reply = await fetch(`${url}/v1/whoami`, { headers: authorization === undefined ? {} : { authorization } });
    t.equal(reply.status, 200);
    t.match(await reply.json(), { project: 'default' });
  }
});

t.test('C-141 a missing, malformed, unknown or refused credential gets the same 401', async (t) => {
  const refusing: AuthProvider = {
    authenticate: ({ bearer }) => (bearer?.startsWith('svc') ? { refused: 'expired' } : undefined),
  };
  const clock = new ManualClock();
  const served = await serve(t, { routes: [whoami], providers: [refusing, new OneToken('good')], clock });
  const credentials = [
    undefined,
    '',
    'Bearer',
    'Bearer  ',
    'good',
    'Basic good',
    'Bearer bad',
    'Bearer good x',
    'Bearer svcp_1',
    `Bearer ${'x'.repeat(8192)}`,
  ];
  for (const authorization of credentials) {
    const reply = await fetch(`${served.url}/v1/whoami`, { headers: authorization === undefined ? {} : { authorization } });
    clock.advance(1_000); // so that each has a line in the log
    t.equal(reply.status, 401, String(authorization));
    t.equal(reply.headers.get('www-authenticate'), 'Bearer');
    t.same(await reply.json(), REFUSAL);
  }
  await served.stop();
  t.same(
    served.requests().map(({ refused }) => refused),
    [
      'no Authorization header',
      'a malformed credential',
      'a malformed credential',
      'a malformed credential',
      'a malformed credential',
      'a malformed credential',
      'no auth provider recognises the credential',
      'a malformed credential',
      'expired',
      'the credential is too long',
    ],
  );
});

t.test('C-141 two Authorization headers get 401 even if one of them is valid', async (t) => {
  const provider = new OneToken('good');
  const { port } = await serve(t, { routes: [whoami], providers: [provider] });
  const client = await RawClient.open(port);
  client.send(
    'GET /v1/whoami HTTP/1.1',
    'Host: 127.0.0.1',
    'Authorization: Bearer good',
    'authorization: Bearer other',
    'Connection: close',
    '',
    '',
  );
  const { status, body } = replyOf(await client.ended());
  t.equal(status, 401);
  t.same(JSON.parse(body), REFUSAL);
  t.same(provider.asked, []);
});

t.test('C-142 the scheme is case-insensitive, and spaces are allowed', async (t) => {
  const { url } = await serve(t, { routes: [whoami], providers: [new OneToken('good')] });
  for (const authorization of ['Bearer good', 'bearer good', 'BEARER    good  ']) {
    const reply = await fetch(`${url}/v1/whoami`, { headers: { authorization } });
    t.same(await reply.json(), ACME.principal, authorization);
  }
});

t.test('C-142 authentication comes before any other check of a request', async (t) => {
  const { url, port } = await serve(t, {
    routes: [echo(), whoami],
    providers: [new OneToken('good')],
    config: { bodyLimit: '1kb' },
  });
  for (const [path, init] of [
    ['/v1/nowhere', {}],
    ['/v1', {}],
    ['/v1/whoami', { method: 'DELETE' }],
    ['/v1/echo', { method: 'POST', body: 'no JSON' }],
    ['/v1/echo', { method: 'POST', body: 'x'.repeat(100_000), headers: { 'content-type': 'application/json' } }],
  ] as const) {
    t.equal((await fetch(`${url}${path}`, init)).status, 401, path);
  }
  const client = await RawClient.open(port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Type: application/json', 'Content-Length: 100', '', '{');
  t.equal(replyOf(await client.ended()).status, 401);
});

t.test('auth providers are asked in file order until one answers', async (t) => {
  const first = new OneToken('one');
  const second = new OneToken('two');
  const { url } = await serve(t, { routes: [whoami], providers: [first, { authenticate: async () => undefined }, second] });
  for (const token of ['one', 'two']) await fetch(`${url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } });
  t.same(first.asked, [{ bearer: 'one' }, { bearer: 'two' }]);
  t.same(second.asked, [{ bearer: 'two' }]);
});

t.test('a failing auth provider gives 503, and the log names it', async (t) => {
  const broken: AuthProvider = { authenticate: () => Promise.reject(new Error('keys out of reach')) };
  const served = await serve(t, { routes: [whoami], providers: [broken, new OneToken('good')] });
  const reply = await fetch(`${served.url}/v1/whoami`, { headers: { authorization: 'Bearer good' } });
  t.equal(reply.status, 503);
  t.equal(reply.headers.get('retry-after'), '5');
  t.same(await errorOf(reply), {
    message: 'The server cannot check API tokens right now. Try again later.',

    code: 'auth_unavailable',
  });
  const line = served.logs.find(({ level }) => level === 'error');
  t.match(line, { err: { message: 'keys out of reach' }, provider: 'test.provider', request_id: /^req_/ });
  t.notMatch(JSON.stringify(served.logs), 'good');
});

t.test('S-40 a failing auth provider is logged when it begins to fail, once a minute, and when it works again', async (t) => {
  const clock = new ManualClock();
  let down = true;
  const provider: AuthProvider = {
    authenticate: async () => {
      if (down) throw new Error('keys out of reach');
      return { refused: 'unknown' };
    },
  };
  const served = await serve(t, { routes: [whoami], providers: [provider], clock });
  const ask = async (times: number) => {
    const headers = { authorization: 'Bearer x' };
    for (let n = 0; n < times; n++) await fetch(`${served.url}/v1/whoami`, { headers });
  };
  await ask(20);
  clock.advance(60_000);
  await ask(10);
  down = false;
  await ask(2);
  t.match(
    served.logs.filter(({ provider }) => provider !== undefined),
    [
      { level: 'error', msg: 'an auth provider failed', err: { message: 'keys out of reach' } },
      { level: 'error', msg: 'an auth provider still fails', failures: 21, err: undefined },
      { level: 'info', msg: 'an auth provider works again', failures: 30 },
    ],
  );
});

t.test('C-143 a public route outside /v1 is served without a credential', async (t) => {
  const probe = get('/probe', ({ principal }) => ({ status: 200, body: principal }), 'public');
  const served = await serve(t, {
    routes: [probe, get('/inside', () => ({ status: 200, body: {} }))],
    providers: [new OneToken('good')],
  });
  t.same(await (await fetch(`${served.url}/probe`)).json(), { project: 'default', scopes: [] });
  t.equal((await fetch(`${served.url}/nowhere`)).status, 404);
  t.equal((await fetch(`${served.url}/inside`)).status, 401);
});

t.test('C-146 a credential appears in no log line and no response', async (t) => {
  const served = await serve(t, { routes: [whoami], providers: [new OneToken('canary-token-good')] });
  const answers: string[] = [];
  for (const token of ['canary-token-good', 'canary-token-bad', 'canary token']) {
    const reply = await fetch(`${served.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } });
    answers.push(await reply.text(), JSON.stringify([...reply.headers]));
  }
  await served.stop();
  t.notMatch(JSON.stringify([answers, served.logs]), /canary/);
  t.match(served.requests()[0], { project: 'acme', token_id: 'tok_1', token_name: 'ci', status: 200 });
});

t.test('an auth provider can identify callers by other headers', async (t) => {
  const byKey: AuthProvider = {
    authenticate: ({ bearer, headers }) => (bearer === undefined && headers['x-api-key'] === 'good' ? ACME : undefined),
  };
  const { url } = await serve(t, { routes: [whoami], providers: [byKey, new OneToken('token')] });
  const statusOf = async (headers: Record<string, string>) => (await fetch(`${url}/v1/whoami`, { headers })).status;
  t.equal(await statusOf({ 'X-Api-Key': 'good' }), 200);
  t.equal(await statusOf({ 'X-Api-Key': 'good', authorization: 'Basic eDp5' }), 200, 'another scheme is not a bearer token');
  t.equal(await statusOf({ 'X-Api-Key': 'bad' }), 401);
  t.equal(await statusOf({ authorization: 'Bearer token' }), 200);
  t.equal(await statusOf({ 'X-Api-Key': 'good', authorization: `Bearer ${'x'.repeat(8192)}` }), 401, 'too long');
});
