import { ManualClock } from '@plugboard/testing';
import OpenAI from 'openai';
import t from 'tap';
import { ASSISTANT, errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';

const CI = 'token-of-ci-0123456789';
const OPS = 'token-of-ops-0123456789';

function tokens(limits: string): string {
  return `
auth:
  bearer:
    tokens:
      - { name: ci, project: default, token: ${CI}, ${limits} }
      - { name: ops, project: default, token: ${OPS} }
`;
}

const REFUSED = { type: 'requests', param: null, code: 'rate_limit_exceeded' };

t.test('C-169 a token beyond its requests per minute gets the wait, and other tokens are not affected', async (t) => {
  const clock = new ManualClock();
  const server = await TestServer.start(t, TRANSPORTS + ASSISTANT + tokens('requestsPerMinute: 3'), { clock });
  const seen: unknown[] = [];
  for (const body of [saying('Hi'), saying('Hi', { stream: true }), '{']) {
    const { status, headers } = await server.chat(body, bearer(CI));
    seen.push([status, ...['limit', 'remaining', 'reset'].map((what) => headers.get(`x-ratelimit-${what}-requests`))]);
  }
  t.strictSame(seen, [
    [200, '3', '2', '20s'],
    [200, '3', '1', '40s'],
    [400, '3', '0', '1m0s'],
  ]);
  const asked = server.models.requests.length;
  const refused = await server.chat(saying('Hi'), bearer(CI));
  t.equal(refused.status, 429);
  t.match(errorOf(refused), { ...REFUSED, message: /\S/ });
  t.equal(refused.headers.get('retry-after'), '20');
  t.equal(refused.headers.get('retry-after-ms'), '20000');
  t.equal(server.models.requests.length, asked);

  const other = await server.chat(saying('Hi'), bearer(OPS));
  t.equal(other.status, 200);
  t.notOk(other.headers.has('x-ratelimit-limit-requests'));
  t.notOk((await server.get('/health', bearer(CI))).headers.has('x-ratelimit-limit-requests'), 'a probe counts nothing');

  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: CI, maxRetries: 0 });
  await t.rejects(client.models.list(), {
    constructor: OpenAI.RateLimitError,
    status: 429,
    code: 'rate_limit_exceeded',
    type: 'requests',
  });
  clock.advance(20_000);
  t.equal((await server.chat(saying('Hi'), bearer(CI))).status, 200);
});

t.test('C-169 a token cannot run more turns at once than its limit', async (t) => {
  const server = await TestServer.start(t, TRANSPORTS + ASSISTANT + tokens('runningTurns: 1'));
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ before: gate.promise, text: 'At last.' });
  const first = server.chat(saying('Take your time'), bearer(CI));
  await server.models.received(1);
  for (const stream of [false, true]) {
    const refused = await server.chat(saying('Hi', { stream }), bearer(CI));
    t.equal(refused.status, 429);
    t.match(errorOf(refused), REFUSED);
    t.equal(refused.headers.get('retry-after'), '1');
    t.equal(refused.headers.get('retry-after-ms'), '1000');
  }
  t.equal((await server.chat(saying('Hi'), bearer(OPS))).status, 200);
  gate.resolve();
  t.equal((await first).status, 200);
  t.equal((await server.chat(saying('Hi'), bearer(CI))).status, 200);
});
