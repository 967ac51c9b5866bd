import type { Principal } from '@plugboard/kernel';
import { checkOptions, ModelServer, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { entry, FOLDER, fixture } from './entry.js';

const ANNA: Principal = {
  project: 'acme',
  token: 'jwt:anna',
  tokenId: 'jwt_1',
  scopes: ['chat'],
  agents: ['assistant'],
  limits: { runningTurns: 1 },
  subject: 'anna',
  claims: { sub: 'anna', groups: ['staff', { of: 'acme' }] },
};

/** The `_meta` of a call that a real MCP server was sent, without the SDK's own. */
async function metaOf(t: Test, options: object, principal?: Principal): Promise<unknown> {
  const files = entry(t, { ...fixture(), ...options });
  await files.start();
  const {
    progressToken: _,
    'plugboard/idempotency-key': _key,
    ...meta
  } = JSON.parse(await files.text('meta', {}, principal ? { principal } : {}));
  return meta;
}

t.test('forward: principal sends the caller and the claims of a JWT', async (t) => {
  t.strictSame(await metaOf(t, { forward: 'principal' }, ANNA), {
    'plugboard/principal': { project: 'acme', token: 'jwt:anna', subject: 'anna', claims: ANNA.claims },
  });
});

t.test('fields that the credential does not have are left out', async (t) => {
  const token: Principal = { project: 'acme', token: 'ci', tokenId: 'tok_1', scopes: ['chat'] };
  t.strictSame(await metaOf(t, { forward: 'principal' }, token), { 'plugboard/principal': { project: 'acme', token: 'ci' } });
});

t.test('on an open server only the project is sent', async (t) => {
  t.strictSame(await metaOf(t, { forward: 'principal' }), { 'plugboard/principal': { project: 'default' } });
});

t.test('without the option the caller is not sent', async (t) => {
  t.strictSame(await metaOf(t, {}, ANNA), {});
});

t.test('forward accepts no other value', async (t) => {
  t.match(checkOptions(plugin, { command: 'x', forward: 'credential' }).faults, [/^forward: must be "principal"/]);
});

const WHO = `
import { AuthProviders, definePlugin } from '@plugboard/kernel';
export default definePlugin({
  name: 'who', apiVersion: 1, summary: 'Knows one token',
  configSchema: { type: 'object', properties: {}, additionalProperties: false },
  register(ctx) {
    const principal = ${JSON.stringify(ANNA)};
    ctx.contribute(AuthProviders, { authenticate: ({ bearer }) => bearer === 'a-long-credential' ? { principal } : undefined });
  },
});
`;

t.test('S-11 neither the caller nor the model can set the principal, and the model does not see it', async (t) => {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const server = await startServer(
    `
transports: { http: { port: 0 }, chat-completions: {} }
auth: { who: { use: ./who.mjs } }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: scripted } }
tools: { files: { use: mcp, command: "\${NODE}", args: [fixtures/server.mjs], cwd: "\${FOLDER}", forward: principal } }
agents: { assistant: { model: fast, tools: [files], project: acme } }
projects: { acme: {} }
`,
    { env: { MODEL_URL: model.url, NODE: process.execPath, FOLDER }, files: { 'who.mjs': WHO } },
  );
  t.teardown(() => server.stop());
  const forged = { 'plugboard/principal': { project: 'umbrella', subject: 'mallory' } };
  model.enqueue({ toolCalls: [{ name: 'files__meta', arguments: { _meta: forged } }] }, { text: 'Done.' });
  const reply = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer a-long-credential', 'content-type': 'application/json', baggage: 'project=umbrella' },
    body: JSON.stringify({
      model: 'assistant',
      messages: [{ role: 'user', content: 'Who am I?' }],
      metadata: { project: 'umbrella' },
      _meta: forged,
    }),
  });
  t.equal(reply.status, 200);
  const [first, second] = model.requests.map(({ body }) => body);
  t.notMatch(JSON.stringify(first), /anna|staff|a-long-credential/);
  const received = JSON.parse(String(second?.messages.at(-1)?.content));
  t.strictSame(received['plugboard/principal'], { project: 'acme', token: 'jwt:anna', subject: 'anna', claims: ANNA.claims });
  t.notMatch(JSON.stringify([received, server.logs]), 'a-long-credential');
});
