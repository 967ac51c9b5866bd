/**
 * Destinations of the log that are full, closed or not read, and callers that try to fill it. Each
 * server is a separate process.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { AUDIENCE, newKey, signed } from '../../../plugins/auth-jwt/test/support/issuer.js';
import { rawExchange } from '../../support/raw-exchange.js';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

/** Requests that are logged with as much text as a request can put into a line. */
const REQUESTS = 1_000;
/** Milliseconds. */
const STOP_LIMIT = 30_000;

const NOISY = `${TRANSPORTS}
auth: { bearer: { tokens: [ { name: one, project: default, token: token-of-a-noisy-caller } ] } }
log: { buffer: 64kb }
${ASSISTANT}`;

/** Sends requests that fill the log: 404s with a long path, by a caller with a token. */
async function fillLog(server: ServerProcess, count: number): Promise<void> {
  const path = `/v1/${'x'.repeat(500)}`;
  const headers = { authorization: 'Bearer token-of-a-noisy-caller' };
  const send = async () => {
    for (let sent = 0; sent < count / 10; sent++) await server.request(path, { headers });
  };
  await Promise.all(Array.from({ length: 10 }, send));
}

for (const [what, redirection] of [
  ['a full device', '2>/dev/full'],
  ['a pipe that is not read', '2> >(exec sleep 60 >/dev/null 2>&1)'],
  ['a closed pipe', '2> >(exec 0<&-)'],
] as const) {
  t.test(`S-34 a log that goes to ${what} does not block the server`, async (t) => {
    const server = await ServerProcess.start(t, { yaml: NOISY, stderr: redirection });
    await fillLog(server, REQUESTS); // until the heap has its size
    const before = server.memory();
    await fillLog(server, REQUESTS);
    t.ok(await server.isHealthy());
    const growth = server.memory() - before;
    t.comment(`grew by ${Math.round(growth)} MiB`);
    t.ok(growth < 32, 'memory does not grow with the lines that wait');
    const start = performance.now();
    server.kill('SIGTERM');
    t.equal(await server.exit(), 0);
    t.ok(performance.now() - start < STOP_LIMIT, 'it stops in time');
  });
}

t.test('S-34 the number of dropped lines is logged once the log is read again', async (t) => {
  const server = await ServerProcess.start(t, { yaml: NOISY });
  server.child.stderr?.pause();
  await fillLog(server, REQUESTS);
  server.child.stderr?.resume();
  const { dropped } = await server.logs('log lines were dropped');
  t.ok(Number(dropped) > 100);
  t.equal(
    server.log.filter(({ msg }) => msg === 'request').length + Number(dropped) >= REQUESTS,
    true,
    'no line is lost uncounted',
  );
});

t.test('S-40 callers without a token cause at most one log line a second and address', async (t) => {
  const server = await ServerProcess.start(t, { yaml: NOISY });
  const start = performance.now();
  const lines = () => server.log.filter(({ msg }) => msg === 'request');
  for (let n = 0; n < 50; n++) {
    await server.request('/no/such/path');
    await server.request('/health');
    await server.request('/v1/models');
  }
  const seconds = Math.ceil((performance.now() - start) / 1000);
  t.ok(lines().length <= seconds + 1, `${lines().length} lines in ${seconds} s for 150 requests`);
  const last = await eventually(async () => {
    await server.request('/health');
    return lines().find(({ left_out }) => Number(left_out) > 0);
  });
  t.match(last, { address: '127.0.0.1' });
});

t.test('S-40 requests that are not HTTP cause at most one log line a second and address', async (t) => {
  const server = await ServerProcess.start(t, { yaml: NOISY });
  const start = performance.now();
  for (let n = 0; n < 50; n++) {
    t.equal((await rawExchange(server.port, 'NOT HTTP', '', '')).status, 400);
    t.equal((await rawExchange(server.port, 'CONNECT example.org:443 HTTP/1.1', 'Host: example.org', '', '')).status, 404);
  }
  const seconds = Math.ceil((performance.now() - start) / 1000);
  const lines = server.log.filter(({ msg }) => msg === 'request');
  t.ok(lines.length <= seconds + 1, `${lines.length} lines in ${seconds} s for 100 requests`);
});

t.test('S-40 an issuer that is down is logged once, with one stack, however many tokens are sent', async (t) => {
  const key = await newKey('one');
  const jwt = `jwt: { issuer: "http://127.0.0.1:1", audience: "${AUDIENCE}", project: { claim: org, map: { one: default } } }`;
  const server = await ServerProcess.start(t, { yaml: `${TRANSPORTS}auth: { ${jwt} }\n${ASSISTANT}` });
  await server.isHealthy();
  const before = server.log.length;
  const start = performance.now();
  const claims = { iss: 'http://127.0.0.1:1', aud: AUDIENCE, exp: Date.now() / 1000 + 600, sub: 'ada', org: 'one' };
  const headers = { authorization: `Bearer ${await signed(key, claims)}` };
  for (let n = 0; n < 600; n++) t.equal((await server.request('/v1/models', { headers })).status, 503);
  const seconds = Math.ceil((performance.now() - start) / 1000);
  const lines = server.log.slice(before);
  const stacks = lines.filter(({ err }) => err !== undefined);
  t.equal(lines.filter(({ msg }) => msg === 'an auth provider failed').length, 1);
  t.ok(stacks.length <= 2, `${stacks.length} stacks`);
  t.ok(lines.length <= seconds + 5, `${lines.length} lines in ${seconds} s for 600 requests`);
});

t.test('S-46 no log line contains control characters of a request', async (t) => {
  const server = await ServerProcess.start(t, { yaml: NOISY });
  const authorization = 'Authorization: Bearer token-of-a-noisy-caller';
  const { status } = await rawExchange(
    server.port,
    ...['GET /v1/models HTTP/1.1', 'Host: localhost', authorization, 'X-Client-Request-Id: a\x9b2Jb\x85c', '', ''],
  );
  t.equal(status, 200);
  const line = await eventually(() => server.log.find(({ client_request_id }) => client_request_id !== undefined));
  t.equal(line.client_request_id, 'a\x9b2Jb\x85c', 'JSON gives it back');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there
  t.notMatch(server.stderr.replaceAll('\n', ''), /[\x00-\x1f\x7f-\x9f]/, 'the line itself has only its escape');
});

t.test('S-48 audit lines are written at every level, to their own file if there is one', async (t) => {
  const yaml = (log: string) => NOISY.replace('log: { buffer: 64kb }', `log: { ${log} }`);
  const forbidden = async (server: ServerProcess) => {
    const headers = { authorization: 'Bearer token-of-a-noisy-caller', 'content-type': 'application/json' };
    await server.request('/v1/models', { headers });
  };
  const quiet = await ServerProcess.start(t, { yaml: yaml('level: silent') });
  await forbidden(quiet);
  await eventually(() => quiet.stderr.includes('"event":"token_first_used"'));
  t.same(
    quiet.log.filter(({ log }) => log !== 'audit'),
    [],
  );

  const apart = await ServerProcess.start(t, { yaml: yaml('level: info, audit: ./audit/audit.log') });
  await forbidden(apart);
  const file = join(apart.folder, 'audit', 'audit.log');
  const line = await eventually(() => existsSync(file) && /^.*(?=\n)/.exec(readFileSync(file, 'utf8'))?.[0]);
  t.match(JSON.parse(line), { log: 'audit', event: 'token_first_used', entry: 'auth.bearer' });
  t.notMatch(apart.stderr, '"log":"audit"');
});
