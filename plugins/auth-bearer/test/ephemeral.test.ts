import { ManualClock, SequentialIds, startServer } from '@plugboard/testing';
import t from 'tap';
import { BearerProvider } from '../src/provider/bearer-provider.js';
import { EphemeralTokens } from '../src/provider/ephemeral-tokens.js';
import { configuredToken } from '../src/tokens/known-token.js';

const SECRET = 'a-secret-of-the-tests';
const CONFIGURED = { name: 'ops', project: 'default', token: SECRET, scopes: ['chat', 'models:read', 'sessions:read'] } as const;

/** A provider with one token, which the test may revoke. */
function issuer() {
  const clock = new ManualClock(Date.UTC(2026, 5, 1));
  const ephemeral = new EphemeralTokens({ clock, ids: new SequentialIds() }, { sharedState: undefined });
  let known = [configuredToken({ ...CONFIGURED, scopes: [...CONFIGURED.scopes] })];
  const find = (digest: string) => known.find(({ sha256 }) => sha256 === digest);
  const provider = new BearerProvider({ find, recordUse: () => {}, now: () => clock.now() }, ephemeral);
  const ask = (bearer: string) => {
    const result = provider.authenticate({ bearer, headers: {} });
    if (!result || result instanceof Promise) throw new Error('not recognised');
    return result;
  };
  const parent = () => {
    const result = ask(SECRET);
    const digest = 'principal' in result ? provider.digestOf(result.principal) : undefined;
    if (digest === undefined) throw new Error('the token was refused');
    return digest;
  };
  const issue = (rights = {}) => {
    const issued = ephemeral.issue(parent(), { scopes: ['chat'], agents: undefined, ...rights });
    if (!issued || issued instanceof Promise) throw new Error('nothing was issued');
    return issued.value;
  };
  return { clock, ephemeral, provider, ask, parent, issue, revoke: () => (known = []) };
}

t.test('an ephemeral token works once, with the rights that it was issued with', async (t) => {
  const { ask, issue, provider } = issuer();
  const value = issue({ agents: ['billing'] });
  t.match(value, /^svce_[0-9A-Za-z]{38}$/);
  const result = ask(value);
  t.match(result, { principal: { project: 'default', token: 'ops', scopes: ['chat'], agents: ['billing'] } });
  t.equal('principal' in result && provider.digestOf(result.principal), undefined, 'it cannot be exchanged for another one');
  t.match(ask(value), { refused: /unknown, expired or used/ });
});

t.test('an ephemeral token expires after a minute', async (t) => {
  const { ask, issue, clock } = issuer();
  const [first, second] = [issue(), issue()];
  clock.advance(59_000);
  t.match(ask(first), { principal: {} });
  clock.advance(1_000);
  t.match(ask(second), { refused: /expired/ });
});

t.test('a connection opened with an ephemeral token lasts as long as its API token', async (t) => {
  const { ask, issue, revoke } = issuer();
  const result = ask(issue());
  const renew = 'principal' in result ? result.renew : undefined;
  t.match(await renew?.(), { principal: { scopes: ['chat'] } });
  const waiting = issue();
  revoke();
  t.match(await renew?.(), { refused: /unknown token/ });
  t.match(ask(waiting), { refused: /unknown token/ });
});

t.test('at most 100 unused ephemeral tokens exist per API token', async (t) => {
  const { issue, ephemeral, parent, clock, ask } = issuer();
  const values = Array.from({ length: 100 }, () => issue());
  t.equal(ephemeral.issue(parent(), { scopes: ['chat'], agents: undefined }), undefined);
  ask(values[0] ?? '');
  t.ok(ephemeral.issue(parent(), { scopes: ['chat'], agents: undefined }));
  clock.advance(60_000);
  t.ok(ephemeral.issue(parent(), { scopes: ['chat'], agents: undefined }), 'what has expired is forgotten');
});

t.test('S-54 POST /v1/ephemeral_tokens issues tokens with fewer rights, and keeps little', async (t) => {
  const server = await startServer(
    `
transports: { http: { port: 0 }, chat-completions: {}, models: {} }
auth: { bearer: { tokens: [ { name: ops, project: default, token: ${SECRET}, scopes: [chat, models:read] } ] } }
models: { fast: { use: demo } }
agents: { mine: { model: fast }, other: { model: fast } }
`,
  );
  t.teardown(() => server.stop());
  const post = async (body: unknown, token = SECRET) => {
    const response = await fetch(`${server.url}/v1/ephemeral_tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as { value: string } & Record<string, unknown> };
  };
  const models = (token: string) =>
    fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);

  const all = await post({});
  t.match(all, { status: 200, body: { object: 'ephemeral_token', scopes: ['chat', 'models:read'], agents: null } });
  t.equal(await models(all.body.value), 200);
  t.equal(await models(all.body.value), 401, 'it was used');

  const few = await post({ scopes: ['chat'], agents: ['mine'] });
  t.match(few, { status: 200, body: { scopes: ['chat'], agents: ['mine'] } });
  t.equal(await models(few.body.value), 403, 'it lacks models:read');

  t.match(await post({ scopes: ['admin'] }), { status: 403 });
  t.match(await post({ scopes: ['everything'] }), { status: 400, body: { error: { code: 'invalid_value' } } });
  for (const scopes of [[], 'chat', [7], {}]) t.match(await post({ scopes }), { status: 400 });
  t.match(await post({ agents: ['gone'] }), { status: 403 }, 'S-54 an agent must exist');
  t.match(await post({ agents: Array(65).fill('mine') }), { status: 400 }, 'S-54 names are limited');
  t.match(await post({ agents: ['x'.repeat(20_000)] }), { status: 413 }, 'S-54 the body is small');
  t.match(await post({ any: 'x'.repeat(20_000) }), { status: 413 });
  t.match(await post({}, 'an-unknown-other-secret'), { status: 401 });
  const once = await post({});
  t.match(await post({}, once.body.value), { status: 403, body: { error: { message: /not for JWTs or other ephemeral/ } } });
});
