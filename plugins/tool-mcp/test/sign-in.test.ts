import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { type AuthServer, authServer, protect, SECRET } from './auth-server.js';
import { entry } from './entry.js';
import { type Era, mcpServer } from './http-server.js';
import { inBothEras } from './http-started.js';

/** An MCP server that wants tokens, its authorization server, and an entry. */
async function signedOut(t: Test, era: Era = 'new', options: object = {}, protection: object = {}) {
  const server = await mcpServer(t, era);
  const auth = await authServer(t);
  let current: AuthServer = auth;
  const protected_ = protect(server, () => current, protection);
  const acceptedFile = join(t.testdir(), 'data', 'accepted.json');
  const config = { url: server.url, auth: { clientId: 'client', clientSecret: SECRET, ...options }, acceptedFile };
  return {
    server,
    auth,
    protection: protected_,
    acceptedFile,
    config,
    files: entry(t, config),
    /** Another authorization server takes over. */
    move: (to: AuthServer) => {
      current = to;
      protected_.named = [to.url];
    },
  };
}

async function signedIn(t: Test, ...rest: [Era?, object?, object?]) {
  const all = await signedOut(t, ...rest);
  await all.files.start();
  await all.files.logged(/is ready/);
  return all;
}

/** The token of the last call that the MCP server received. */
const tokenOf = ({ server }: Awaited<ReturnType<typeof signedOut>>) => server.of('tools/call').at(-1)?.headers.authorization;

inBothEras(
  'MCP-12 a client is signed in where the server says, for this server, and every request has the token',
  async (t, era) => {
    const all = await signedIn(t, era);
    const { files, auth, server, acceptedFile } = all;
    t.equal(await files.text('echo', { a: 1 }), '{"a":1}');
    t.strictSame(
      auth.requests.map(({ form }) => form),
      [{ grant_type: 'client_credentials', scope: 'tools', resource: server.url }],
    );
    t.equal(
      server.received.filter(({ method, headers }) => method !== 'GET' && !headers.authorization).length,
      1,
      'the first one',
    );
    t.match(tokenOf(all), /^Bearer token-1-/);
    t.strictSame(JSON.parse(readFileSync(acceptedFile, 'utf8')), {
      version: 1,
      servers: { 'tools.files': { issuer: auth.url } },
    });
    t.equal(statSync(acceptedFile).mode & 0o777, 0o600);
    t.notMatch(JSON.stringify(files.lines), new RegExp(`${SECRET}|token-1`));
  },
);

t.test('MCP-12 the metadata are found without a pointer, and the scope of the 401 is asked for', async (t) => {
  const { auth, files } = await signedIn(t, 'new', {}, { isPointed: false, scope: 'a b' });
  t.equal(auth.requests[0]?.form.scope, 'a b');
  t.equal(await files.text('echo'), '{}');
});

t.test('MCP-12 scopes of the file are asked for; a server without metadata is its own authorization server', async (t) => {
  const { auth } = await signedIn(t, 'new', { scopes: ['x', 'y'] });
  t.equal(auth.requests[0]?.form.scope, 'x y');

  const { files, server } = await signedOut(t, 'new', {}, { metadata: undefined, isPointed: false });
  const named = `the authorization server ${new URL(server.url).origin}/ publishes no metadata`;
  await t.rejects(files.start(), { message: `signing in failed, so nothing was sent: ${named}: check \`auth.issuer\`` });
});

t.test('MCP-12 a server without metadata is signed in to at the issuer of the file', async (t) => {
  const auth = await authServer(t);
  const server = await mcpServer(t, 'new');
  protect(server, () => auth, { metadata: undefined, isPointed: false });
  const files = entry(t, { url: server.url, auth: { clientId: 'client', clientSecret: SECRET, issuer: `${auth.url}/` } });
  await files.start();
  t.equal(auth.requests[0]?.form.resource, server.url);
  const elsewhere = { clientId: 'client', clientSecret: SECRET, issuer: 'https://login.example.com' };
  protect(server, () => auth);
  const message = /names the authorization server .*, and not https:.*: if that is right, change `auth.issuer`/;
  await t.rejects(entry(t, { url: server.url, auth: elsewhere }).start(), { message });
  t.equal(auth.requests.length, 1);
});

t.test('MCP-12 a private key signs for each request', async (t) => {
  const pairs = {
    RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
    ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
    PS512: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  };
  for (const [algorithm, { privateKey, publicKey }] of Object.entries(pairs)) {
    const pem = privateKey.export({ type: algorithm === 'RS256' ? 'pkcs1' : 'pkcs8', format: 'pem' } as const).toString();
    const options = { clientSecret: undefined, privateKey: pem, ...(algorithm === 'PS512' && { algorithm }) };
    const { auth } = await signedIn(t, 'new', options);
    const { client_assertion: jwt = '', client_assertion_type: type } = auth.requests[0]?.form ?? {};
    t.equal(type, 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    const [head = '', body = '', signature = ''] = jwt.split('.');
    const decoded = [head, body].map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
    t.match(decoded, [{ alg: algorithm }, { iss: 'client', sub: 'client', aud: auth.url }]);
    if (algorithm === 'PS512') continue;
    const key = { key: createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })), dsaEncoding: 'ieee-p1363' as const };
    t.ok(verify('sha256', Buffer.from(`${head}.${body}`), key, Buffer.from(signature, 'base64url')));
  }
});

t.test('MCP-12 a missing scope is asked for once, with the old ones; then the call fails', async (t) => {
  const { files, auth, protection } = await signedIn(t);
  protection.needs = ['write'];
  t.equal(await files.text('echo', { a: 1 }), '{"a":1}');
  t.strictSame(
    auth.requests.map(({ form }) => form.scope),
    ['tools', 'tools write'],
  );
  protection.needs = ['write', 'more'];
  const message = /^the server wants the scope "more", also from a new token: allow it for the client/;
  auth.grants = () => ['tools', 'write'];
  await t.rejects(files.call('echo'), { code: 'mcp_call_refused', message });
  t.equal(auth.requests.length, 3);
  t.equal(auth.requests[2]?.form.scope, 'tools write more');
  await t.rejects(files.call('echo'), { message });
  t.equal(auth.requests.length, 3, 'not asked for again');
});

t.test('MCP-12 the secret goes to one issuer: another one is an error of the call, also after a restart', async (t) => {
  const { files, auth, server, move, config } = await signedIn(t);
  const other = await authServer(t);
  move(other);
  const named = `the server names the authorization server ${other.url}, and not ${auth.url}, so the secret was not sent`;
  const cure = 'if that is right, run plugboard tools accept, or set `auth.issuer`';
  const message = `signing in failed, so nothing was sent: ${named}: ${cure}`;
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message });
  t.equal(server.of('tools/call').length, 1, 'it was refused before it did anything');
  await files.stop();
  await t.rejects(entry(t, config).start(), { code: 'mcp_not_started', message });
  t.strictSame(other.asked, []);

  move(auth);
  const again = entry(t, config);
  await again.start();
  t.equal(await again.text('echo'), '{}');
});

t.test('MCP-12 an issuer that cannot be remembered gets no secret', async (t) => {
  const { auth, config, acceptedFile: bad } = await signedOut(t);
  mkdirSync(dirname(bad));
  writeFileSync(bad, '{');
  const tooLong = join(dirname(bad), 'x'.repeat(240)); // for the name of a temporary file
  for (const [acceptedFile, message] of [
    [tooLong, /cannot be written: ENAMETOOLONG.*; let Plugboard write there, or set `acceptedFile`$/],
    ['/dev/null/accepted.json', /\/dev\/null\/accepted.json cannot be (read|written): /],
    [bad, /accepted.json is not a file of accepted tools \(it is not JSON\)/],
  ] as const)
    await t.rejects(entry(t, { ...config, acceptedFile }).start(), { message });
  t.equal(auth.requests.length, 0);
});

inBothEras('MCP-13 calls whose token was refused ask for one new token, also calls that write', async (t, era) => {
  const { files, auth, server } = await signedIn(t, era);
  auth.tokens.clear();
  await Promise.all(Array.from({ length: 10 }, () => files.call('write')));
  t.equal(auth.requests.length, 2);
  t.equal(server.of('tools/call').length, 20);
});

t.test('MCP-13 entries with one client ask for one token at a time', async (t) => {
  const all = await signedOut(t);
  const gate = Promise.withResolvers<void>();
  all.auth.before = () => gate.promise;
  const entries = [all.files, entry(t, all.config), entry(t, all.config)];
  const starts = entries.map((files) => files.start());
  await eventually(() => all.auth.requests.length > 0);
  gate.resolve();
  await Promise.all(starts);
  t.equal(all.auth.requests.length, 3);
  t.equal(all.auth.mostRunning, 1);
});

t.test('MCP-13 while the authorization server is down, the token is used until it ends; nothing is deleted', async (t) => {
  const all = await signedOut(t);
  const { files, auth, server } = all;
  auth.extra = { expires_in: 100, scope: 'tools extra' };
  await files.start();
  auth.intercept = (_, response) => {
    response.destroy();
    return true;
  };
  files.clock.advance(71_000);
  t.equal(await files.text('echo'), '{}');
  t.match(tokenOf(all), /token-1-/);
  files.clock.advance(30_000);
  const calls = server.of('tools/call').length;
  const message = /^signing in failed, so nothing was sent: the connection to the authorization server \S+ broke$/;
  await t.rejects(files.call('write'), { code: 'mcp_call_refused', message });
  await t.rejects(files.call('write'), { message }, 'at once');
  t.same(files.health(), { state: 'ok' });
  t.equal(server.of('tools/call').length, calls);

  auth.intercept = () => false;
  files.clock.advance(1000);
  t.equal(await files.text('echo'), '{}');
  t.match(tokenOf(all), /token-2-/);
  t.equal(auth.requests.at(-1)?.form.scope, 'tools extra', 'the scopes that were granted');
  files.clock.advance(71_000);
  t.equal(await files.text('echo'), '{}');
  t.match(tokenOf(all), /token-3-/, 'it is replaced before it ends');
});

t.test('MCP-13 a slow authorization server fails the call after 8 s, and a call that is cancelled at once', async (t) => {
  const { files, auth } = await signedIn(t);
  auth.tokens.clear();
  auth.before = () => new Promise(() => {});
  const cancelled = new AbortController();
  const waiting = [
    t.rejects(files.call('echo', {}, { signal: cancelled.signal }), { message: 'enough' }),
    t.rejects(files.call('echo'), { message: `signing in failed, so nothing was sent: ${auth.url} did not answer within 8 s` }),
  ];
  await eventually(() => auth.requests.length === 2);
  cancelled.abort(new Error('enough'));
  await waiting[0];
  files.clock.advance(8000);
  await waiting[1];
  const stopped = t.rejects(files.call('echo'), { message: /has been stopped/ });
  files.clock.advance(1000);
  auth.tokens.clear();
  await files.stop();
  await stopped;
});

t.test('MCP-13 a secret that was rotated is an error without the secret, and works again later', async (t) => {
  const { files, auth } = await signedIn(t);
  auth.tokens.clear();
  auth.secret = 'another-one';
  const message =
    `signing in failed, so nothing was sent: the authorization server ${auth.url} refused the client (invalid_client): ` +
    'check `auth.clientId`, and the secret or key; it said: [redacted] is not right, nor is Basic [redacted]';
  for (let n = 0; n < 3; n++) await t.rejects(files.call('echo'), { code: 'mcp_call_refused', message });
  t.equal(auth.requests.length, 2, 'failed calls do not flood it');
  auth.secret = SECRET;
  files.clock.advance(1000);
  t.equal(await files.text('echo'), '{}');
  t.notMatch(JSON.stringify(files.lines), new RegExp(SECRET));
});

t.test('MCP-12 a server that repeats the token does not get it into an error', async (t) => {
  const { files, auth, server } = await signedIn(t);
  auth.tokens.get = () => undefined;
  await t.rejects(files.call('echo'), { message: /answered HTTP 401; it said: no token: \[redacted\]$/ });
  t.equal(auth.requests.length, 2, 'a new token is asked for once');
  server.intercept = (_, response) => {
    response.setHeader('www-authenticate', 'Bearer error="insufficient_scope"');
    response.writeHead(403).end();
    return true;
  };
  await t.rejects(files.call('echo'), { message: /^the server wants more scopes, also from a new token: / });
});

t.test('answers of an authorization server that cannot be used are told without their content', async (t) => {
  const secret = 'a-token-that-is-not-known';
  const answers: readonly (readonly [string, number, string, RegExp])[] = [
    ['/token', 200, secret, /the authorization server \S+ sent an answer that is not valid$/],
    ['/token', 200, `{"access_token":"${secret}","token_type":"DPoP"}`, /sent a token that is not a bearer token$/],
    ['/token', 200, `{"access_token":"${secret}\\n","token_type":"Bearer"}`, /sent a token that is not a bearer token$/],
    ['/token', 200, `{"token":"${secret}"}`, /sent an answer that is not valid$/],
    ['/token', 500, secret, /the authorization server \S+ answered HTTP 500$/],
    ['/token', 400, `{"error":"odd"}`, /refused the client \(odd\)$/],
    ['/token', 200, 'x'.repeat(2 ** 20 + 1), /sent an answer that is too large$/],
    ['/.well-known', 503, secret, /the authorization server \S+ answered HTTP 503$/],
    ['/.well-known', 200, '{}', /sent an answer that is not valid$/],
    ['/.well-known', 204, '', /sent an answer that is not valid$/],
  ];
  for (const [path, status, body, message] of answers) {
    const { files, auth } = await signedOut(t);
    auth.intercept = (url, response) => {
      if (!url.startsWith(path)) return false;
      response.writeHead(status).end(status === 204 ? undefined : body);
      return true;
    };
    const error = await files.start().catch((error: Error) => error);
    t.match(error, { message });
    t.notMatch(`${error}`, secret);
  }
});

t.test('metadata of another issuer, server or scheme are refused, and no secret is sent', async (t) => {
  const { files, auth, protection, server } = await signedOut(t);
  const metadata = auth.metadata;
  auth.metadata = () => ({ ...metadata(), issuer: 'https://evil.example.com' });
  await t.rejects(files.start(), { message: /evil\.example\.com/ });
  files.clock.advance(1000);
  auth.metadata = () => ({ ...metadata(), token_endpoint: 'http://login.example.com/token' });
  await t.rejects(files.start(), { message: /login\.example\.com/ });
  files.clock.advance(1000);
  auth.metadata = metadata;
  protection.metadata = { resource: 'https://other.example.com/mcp' };
  await t.rejects(files.start(), { message: /the metadata of the server are those of another one, https:\/\/other/ });
  files.clock.advance(1000);
  protection.metadata = { authorization_servers: 7 };
  await t.rejects(files.start(), { message: /the metadata of the server sent an answer that is not valid$/ });
  t.equal(auth.requests.length, 0);
  t.equal(
    server.received.some(({ headers }) => headers.authorization),
    false,
  );
});

t.test('S-07 addresses that metadata name are public, or allowed', async (t) => {
  const { files, protection, auth, config } = await signedOut(t);
  const { port } = new URL(auth.url);
  for (const [named, message] of [
    [`http://localhost:${port}`, /cannot be reached: its address is private/],
    [
      'https://169.254.169.254',
      /https:\/\/169\.254\.169\.254 is not contacted: its address is private; `allowPrivate` can allow it/,
    ],
    ['https://[::ffff:7f00:1]', /is not contacted: its address is private/],
    ['https://2130706433:1', /cannot be reached: connect ECONNREFUSED 127.0.0.1:1/], // the host of `url`
    ['http://login.example.com', /http:\/\/login\.example\.com is not contacted: it must be https/],
    ['ftp://127.0.0.1', /is not contacted: it must be https/],
  ] as const) {
    protection.named = [named];
    await t.rejects(files.start(), { message }, named);
    files.clock.advance(1000);
  }
  t.strictSame(auth.asked, []);
  protection.named = [`http://localhost:${port}`];
  const metadata = auth.metadata();
  auth.metadata = () => ({ ...metadata, issuer: `http://localhost:${port}` });
  await entry(t, { ...config, allowPrivate: [`localhost:${port}`] }).start();
  await entry(t, { ...config, auth: { ...config.auth, issuer: `http://localhost:${port}` } }).start();
  t.equal(auth.requests.length, 2);
});
