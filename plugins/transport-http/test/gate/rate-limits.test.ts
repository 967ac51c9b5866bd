import { AgentRuntimes, type AuthProvider, type Principal } from '@plugboard/kernel';
import { type AgentRuntime, OPEN, type ProjectLimits } from '@plugboard/kernel/contracts';
import { ManualClock, testContext } from '@plugboard/testing';
import t from 'tap';
import { RateLimits } from '../../src/gate/rate-limits.js';
import plugin, { HttpError } from '../../src/index.js';
import { ANONYMOUS } from '../../src/limits/caller.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const MINUTE = 60_000;

function limited(tokenId: string, requestsPerMinute: number): Principal {
  return { project: 'acme', token: 'ci', tokenId, scopes: [], limits: { requestsPerMinute } };
}

/** @param projects the limits of projects, by name. */
function rateLimits(clock = new ManualClock(), projects: Readonly<Record<string, ProjectLimits>> = {}): RateLimits {
  const runtime = { projectLimits: (project: string) => projects[project] ?? {} } as AgentRuntime;
  const context = testContext(plugin, { clock });
  context.provide(AgentRuntimes, runtime);
  return context.container.resolve(RateLimits);
}

/** The decision about a request: whether it may pass, and the headers of its answer. */
function take(limits: RateLimits, principal: Principal) {
  const headers: Record<string, string> = {};
  try {
    limits.take(principal, { set: (name, value) => Object.assign(headers, { [name]: value }) });
    return { ...headers, passed: true };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { ...headers, ...error.headers, passed: false };
  }
}

t.test('C-169 a token may spend its limit at once, then gets requests back evenly', async (t) => {
  const clock = new ManualClock();
  const limits = rateLimits(clock);
  const ask = () => take(limits, limited('a', 60));
  for (let left = 59; left >= 0; left--) t.match(ask(), { passed: true, 'x-ratelimit-remaining-requests': String(left) });
  t.match(ask(), { passed: false, 'retry-after': '1', 'retry-after-ms': '1000', 'x-ratelimit-remaining-requests': '0' });
  clock.advance(999);
  t.match(ask(), { passed: false, 'retry-after': '1', 'retry-after-ms': '1' });
  clock.advance(1);
  t.match(ask(), { passed: true });
  t.match(ask(), { passed: false });
  clock.advance(10 * MINUTE);
  t.match(ask(), { passed: true, 'x-ratelimit-remaining-requests': '59' });
});

t.test('C-169 Retry-After is in whole seconds, at most a minute', async (t) => {
  const clock = new ManualClock();
  const limits = rateLimits(clock);
  const ask = () => take(limits, limited('a', 1));
  t.match(ask(), { passed: true, 'x-ratelimit-limit-requests': '1', 'x-ratelimit-reset-requests': '1m0s' });
  t.match(ask(), { passed: false, 'retry-after': '60', 'retry-after-ms': '60000' });
  clock.advance(500);
  t.match(ask(), { passed: false, 'retry-after': '60', 'retry-after-ms': '59500', 'x-ratelimit-reset-requests': '59.5s' });
  clock.advance(59_499);
  t.match(ask(), { passed: false, 'retry-after': '1', 'retry-after-ms': '1', 'x-ratelimit-reset-requests': '1ms' });
  t.match(take(limits, limited('none', 0.5)), { passed: false, 'retry-after': '60' });
});

t.test('each token is counted separately by its id', async (t) => {
  const limits = rateLimits();
  t.match(take(limits, limited('a', 1)), { passed: true });
  t.match(take(limits, limited('b', 1)), { passed: true });
  t.match(take(limits, limited('a', 1)), { passed: false });
  const { tokenId: _, ...nameless } = limited('', 1);
  t.match(take(limits, nameless), { passed: true });
  t.match(take(limits, nameless), { passed: false });
  t.match(take(limits, { ...nameless, project: 'beta' }), { passed: true });
});

t.test('a lowered limit takes effect at once', async (t) => {
  const limits = rateLimits();
  t.match(take(limits, limited('a', 100)), { 'x-ratelimit-remaining-requests': '99' });
  t.match(take(limits, limited('a', 10)), { 'x-ratelimit-remaining-requests': '8' });
});

t.test('only tokens used within the last minute are kept', async (t) => {
  const clock = new ManualClock();
  const limits = rateLimits(clock);
  for (let n = 0; n < 1_000; n++) take(limits, limited(`early ${n}`, 5));
  clock.advance(MINUTE / 2);
  for (let n = 0; n < 10; n++) take(limits, limited(`late ${n}`, 5));
  take(limits, limited('early 7', 5));
  t.equal(limits.size, 1_010);
  clock.advance(MINUTE / 2);
  take(limits, limited('late 0', 5));
  t.equal(limits.size, 11, 'those that were used since, and one of the early ones');
});

t.test('S-41 all callers of a project share the limit of the project', async (t) => {
  const clock = new ManualClock();
  const limits = rateLimits(clock, { acme: { requestsPerMinute: 3 } });
  t.match(take(limits, limited('a', 2)), { passed: true, 'x-ratelimit-remaining-requests': '1' });
  t.match(take(limits, limited('b', 60)), { passed: true, 'x-ratelimit-limit-requests': '3' });
  t.match(take(limits, limited('a', 2)), { passed: true, 'x-ratelimit-remaining-requests': '0' });
  t.match(take(limits, limited('b', 60)), {
    passed: false,
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': '0',
    'retry-after': '20',
  });
  t.match(take(limits, { ...limited('b', 60), project: 'beta' }), { passed: true, 'x-ratelimit-remaining-requests': '58' });
  clock.advance(MINUTE);
  t.match(take(limits, limited('b', 60)), { passed: true }, 'what was refused did not count for the token either');
});

t.test('S-41 callers without a credential do not use up the limit of the default project', async (t) => {
  const limits = rateLimits(new ManualClock(), { default: { requestsPerMinute: 1 } });
  t.strictSame(take(limits, ANONYMOUS), { passed: true });
  t.match(take(limits, OPEN), { passed: true, 'x-ratelimit-remaining-requests': '0' });
  t.match(take(limits, OPEN), { passed: false });
});

t.test('a principal without a limit is not counted', async (t) => {
  const limits = rateLimits();
  t.strictSame(take(limits, { project: 'acme', scopes: [], limits: { runningTurns: 1 } }), { passed: true });
  t.equal(limits.size, 0);
});

t.test('C-169 a token over its limit gets 429, and every response has the remaining requests', async (t) => {
  const clock = new ManualClock();
  const provider: AuthProvider = {
    authenticate: ({ bearer }) => (bearer === 'ci' ? { principal: limited('tok_1', 4) } : undefined),
  };
  const routes = [
    get('/v1/thing', () => ({ status: 200, body: {} })),
    get('/v1/admin', () => ({ status: 200 }), ['admin']),
    echo(),
  ];
  const served = await serve(t, { routes, providers: [provider], clock });
  const headers = { authorization: 'Bearer ci' };
  const seen: unknown[] = [];
  for (const path of ['/v1/thing', '/v1/admin', '/v1/nowhere', '/v1/echo', '/v1/thing']) {
    const { status, headers: received } = await fetch(served.url + path, { headers });
    seen.push([
      status,
      received.get('x-ratelimit-limit-requests'),
      received.get('x-ratelimit-remaining-requests'),
      received.get('x-ratelimit-reset-requests'),
    ]);
  }
  t.strictSame(seen, [
    [200, '4', '3', '15s'],
    [403, '4', '2', '30s'],
    [404, '4', '1', '45s'],
    [405, '4', '0', '1m0s'],
    [429, '4', '0', '1m0s'],
  ]);
  const refused = await fetch(`${served.url}/v1/thing`, { headers });
  t.equal(refused.headers.get('retry-after'), '15');
  t.equal(refused.headers.get('retry-after-ms'), '15000');
  t.strictSame(await errorOf(refused), {
    message: 'This credential has reached its limit of requests per minute. Try again later.',

    code: 'rate_limit_exceeded',
  });
  const stranger = await fetch(`${served.url}/v1/thing`);
  t.equal(stranger.status, 401);
  t.notOk(stranger.headers.has('x-ratelimit-limit-requests'));

  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: x', 'Authorization: Bearer ci', 'Content-Length: 1000000', '', '{');
  t.equal(replyOf(await client.ended()).status, 429, 'before the body is read');
  clock.advance(15_000);
  t.equal((await fetch(`${served.url}/v1/thing`, { headers })).status, 200);
  await served.stop();
  t.match(served.requests().at(4), {
    status: 429,
    error_code: 'rate_limit_exceeded',
    token_id: 'tok_1',
    outcome: 'client_error',
  });
});
