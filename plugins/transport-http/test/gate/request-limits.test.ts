import type { AuthProvider, Principal } from '@plugboard/kernel';
import { type AgentRuntime, type RequestCount, TurnError } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const CALLER: Principal = { project: 'acme', token: 'ci', tokenId: 'tok_1', scopes: [], limits: { requestsPerMinute: 4 } };

/** A runtime that allows four requests. */
function countingRuntime(): AgentRuntime {
  let remaining = 4;
  const countRequest = (): RequestCount => {
    const refused = remaining === 0 ? new TurnError('rate_limited', 'Four are enough.', { retryAfter: 14.999 }) : undefined;
    remaining = Math.max(0, remaining - 1);
    return { limit: { requestsPerMinute: 4, remaining, reset: (4 - remaining) * 15_000 }, refused };
  };
  return { countRequest } as Partial<AgentRuntime> as AgentRuntime;
}

t.test('S-41 requests to public routes, which need no credential, are not counted', async (t) => {
  const routes = [get('/open', () => ({ status: 200, body: {} }), 'public')];
  const { url } = await serve(t, { routes, runtime: countingRuntime() });
  const { headers } = await fetch(`${url}/open`);
  t.notOk(headers.has('x-ratelimit-limit-requests'));
});

t.test('C-169 a token over its limit gets 429, and every response has the remaining requests', async (t) => {
  const clock = new ManualClock();
  const provider: AuthProvider = {
    authenticate: ({ bearer }) => (bearer === 'ci' ? { principal: CALLER } : undefined),
  };
  const routes = [
    get('/v1/thing', () => ({ status: 200, body: {} })),
    get('/v1/admin', () => ({ status: 200 }), ['admin']),
    echo(),
  ];
  const served = await serve(t, { routes, providers: [provider], clock, runtime: countingRuntime() });
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
  t.equal(refused.headers.get('retry-after-ms'), '14999');
  t.strictSame(await errorOf(refused), {
    message: 'Four are enough.',
    code: 'rate_limit_exceeded',
  });
  const stranger = await fetch(`${served.url}/v1/thing`);
  t.equal(stranger.status, 401);
  t.notOk(stranger.headers.has('x-ratelimit-limit-requests'));

  const client = await RawClient.open(served.port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: x', 'Authorization: Bearer ci', 'Content-Length: 1000000', '', '{');
  t.equal(replyOf(await client.ended()).status, 429, 'before the body is read');
  await served.stop();
  t.match(served.requests().at(4), {
    status: 429,
    error_code: 'rate_limit_exceeded',
    token_id: 'tok_1',
    outcome: 'client_error',
  });
});
