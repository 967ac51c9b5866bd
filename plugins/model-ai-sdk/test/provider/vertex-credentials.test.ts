/** Application Default Credentials of Google: a scripted metadata server and token endpoint. */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ConfigFault } from '@plugboard/kernel';
import t, { type Test } from 'tap';
import { open, readAll, readError, textOf } from '../connection.js';

const OPTIONS = { apiKey: '', settings: { project: 'my-project', location: 'global' } };

/** Where the package looks for credentials, and nothing else. */
function withEnvironment(t: Test, env: Readonly<Record<string, string>>): void {
  const names = ['GCE_METADATA_HOST', 'GOOGLE_APPLICATION_CREDENTIALS', 'METADATA_SERVER_DETECTION', 'HOME'];
  const before = names.map((name) => [name, process.env[name]] as const);
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  for (const name of names) set(name, { HOME: '/nonexistent', ...env }[name]);
  t.teardown(() => {
    for (const [name, value] of before) set(name, value);
  });
}

/** A server that answers every request with these tokens, in their order. */
async function tokenServer(t: Test, ...tokens: readonly string[]) {
  const requests: IncomingMessage[] = [];
  const http = createServer((request, response) => {
    const isToken = request.url?.includes('token') === true;
    if (isToken) requests.push(request);
    response.setHeader('metadata-flavor', 'Google').setHeader('content-type', 'application/json');
    const token = tokens[Math.min(requests.length, tokens.length) - 1];
    response.end(isToken ? JSON.stringify({ access_token: token, expires_in: 3600, token_type: 'Bearer' }) : '{}');
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => http.close());
  return { requests, host: `127.0.0.1:${(http.address() as AddressInfo).port}` };
}

t.test('the token of the metadata server is used for all requests', async (t) => {
  const { host, requests } = await tokenServer(t, 'ya29.first');
  withEnvironment(t, { GCE_METADATA_HOST: host });
  const vertex = await open(t, 'vertex', OPTIONS);
  for (const _ of [1, 2]) t.equal(textOf(await readAll(vertex)), 'Hello');
  t.strictSame(
    vertex.server.requests.map(({ headers }) => headers.authorization),
    ['Bearer ya29.first', 'Bearer ya29.first'],
  );
  t.equal(requests.length, 1);
  t.equal(requests[0]?.headers['metadata-flavor'], 'Google');
});

t.test('a token that Vertex refuses is an error that says what to check', async (t) => {
  const { host } = await tokenServer(t, 'expired');
  withEnvironment(t, { GCE_METADATA_HOST: host });
  const error = await readError(await open(t, 'vertex', OPTIONS));
  t.match(error, {
    retryable: false,
    message: /did not accept the credentials \(401\); check apiKey and credentials of models\.native/,
  });
});

t.test('a file of workload identity is exchanged at its token endpoint', async (t) => {
  const { host, requests } = await tokenServer(t, 'ya29.exchanged');
  const subject = join(t.testdir({ subject: 'signed-by-another-cloud' }), 'subject');
  const file = {
    type: 'external_account',
    audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `http://${host}/v1/token`,
    credential_source: { file: subject },
  };
  withEnvironment(t, {});
  const options = { ...OPTIONS, settings: { ...OPTIONS.settings, googleAuthOptions: { credentials: file } } };
  const vertex = await open(t, 'vertex', options);
  t.equal(textOf(await readAll(vertex)), 'Hello');
  t.equal(vertex.server.requests[0]?.headers.authorization, 'Bearer ya29.exchanged');
  t.equal(requests.length, 1);
  await rm(subject);
  const error = await readError(await open(t, 'vertex', options));
  t.match(error, {
    retryable: false,
    message: /^the provider package cannot read a file \(ENOENT\); check those that models\.native names/,
  });
});

t.test('without any credentials the start says so', async (t) => {
  withEnvironment(t, { METADATA_SERVER_DETECTION: 'none' });
  const failure = await open(t, 'vertex', OPTIONS).catch((error: unknown) => error);
  t.ok(failure instanceof ConfigFault);
  t.match(failure, {
    message: /^the provider package finds no credentials; set apiKey, or .*: Could not load the default credentials/,
  });
});
