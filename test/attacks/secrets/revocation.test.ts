import { setTimeout } from 'node:timers/promises';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import type { LiveStream } from '../../support/live-stream.js';
import { saying, type TestServer } from '../../support/test-server.js';
import { startWithAllRoutes, TOKEN } from '../support/all-routes.js';
import { everyRoute, requiresToken } from '../support/every-route.js';
import { decisionOf, sendRaw } from '../support/send-raw.js';
import { tokenCommand } from '../support/token-command.js';

const RESPONSES = '/v1/responses';
const RESPONSE = { model: 'assistant', input: 'Hi' };

/**
 * Ten seconds of the server's clock. What falls due sets its timer again when it is done, and is
 * waited for.
 */
async function tenSeconds(clock: ManualClock): Promise<void> {
  for (let second = 0; second < 10; second++) {
    const { pending } = clock;
    clock.advance(1_000);
    await eventually(() => clock.pending >= pending);
  }
}

/** What is decided about a token on each route that asks for one with the usual scopes. */
function decisions(server: TestServer, value: string) {
  const routes = everyRoute(server).filter((call) => requiresToken(call) && !('orOpen' in (call.access as object)));
  return Promise.all(
    routes.map(async (call) => {
      const reply = await sendRaw(server, call, [['authorization', `Bearer ${value}`]]);
      return `${decisionOf(reply)}: ${call.route}`;
    }),
  );
}

for (const [how, end] of [
  ['revoked', (server: TestServer) => tokenCommand(server, 'revoke', {}, 'ci')],
  ['rotated without a grace', (server: TestServer) => tokenCommand(server, 'rotate', { grace: '0s' }, 'ci')],
] as const) {
  t.test(`S-12 a token that is ${how} is refused on every route within ten seconds, without a restart`, async (t) => {
    const clock = new ManualClock();
    const server = await startWithAllRoutes(t, { clock });
    const secret = await tokenCommand(server, 'create', { project: 'default', name: 'ci' });
    await tenSeconds(clock);
    const before = await decisions(server, secret);
    t.strictSame(
      before.filter((decision) => !decision.startsWith('let in')),
      [],
    );
    await end(server);
    await tenSeconds(clock);
    const after = await decisions(server, secret);
    t.strictSame(
      after.filter((decision) => !decision.startsWith('unknown')),
      [],
    );
    t.equal(after.length, before.length);
  });
}

t.test('S-12 a token is refused on every route from the moment it expires', async (t) => {
  const clock = new ManualClock();
  const server = await startWithAllRoutes(t, { clock });
  const secret = await tokenCommand(server, 'create', { project: 'default', name: 'ci', expires: '60s' });
  await tenSeconds(clock);
  t.ok((await decisions(server, secret)).every((decision) => decision.startsWith('let in')));
  clock.advance(50_000);
  t.ok((await decisions(server, secret)).every((decision) => decision.startsWith('unknown')));
});

t.test('S-62 a request whose token is revoked while it runs ends', async (t) => {
  const clock = new ManualClock();
  const server = await startWithAllRoutes(t, { clock });
  const [kept, revoked] = [
    await tokenCommand(server, 'create', { project: 'default', name: 'kept', expires: '60s' }),
    await tokenCommand(server, 'create', { project: 'default', name: 'ci' }),
  ].map((token) => ({ authorization: `Bearer ${token}` }));
  await tenSeconds(clock);
  const { promise, resolve } = Promise.withResolvers<string>();
  server.models.respond({ text: ['Beginning', promise] });
  const hears = (stream: LiveStream) => stream.until('Beginning');
  const streams = [
    await server.open(saying('Hi'), revoked),
    await server.open({ ...RESPONSE, store: false }, revoked, RESPONSES),
  ];
  const [other, expiring] = [
    await server.open(saying('Hi'), { authorization: `Bearer ${TOKEN}` }),
    await server.open(saying('Hi'), kept),
  ];
  await Promise.all([...streams, other, expiring].map(hears));
  const waiting = server.chat(saying('Hi'), revoked);
  await server.models.received(5);

  await tokenCommand(server, 'revoke', {}, 'ci');
  const isAborted = () => server.models.requests.filter(({ state }) => state === 'aborted').length === 3;
  for (let second = 0; second < 16 && !isAborted(); second++) {
    clock.advance(1_000); // 10 until the file is read again, and 5
    await setTimeout(20);
  }
  t.ok(isAborted(), 'their model calls are aborted');
  t.equal((await waiting).status, 401, 'an answer that is not streamed');
  clock.advance(1_000);
  for (const stream of streams) {
    await stream.end().catch(() => {});
    t.notMatch(stream.received, /finish_reason":"stop"|response\.completed/);
  }

  clock.advance(60_000);
  await setTimeout(20);
  resolve(' and end');
  for (const stream of [other, expiring]) {
    await stream.until('[DONE]');
    t.match(stream.received, /finish_reason":"stop"/, 'requests with other tokens, and with one that expired meanwhile');
  }
});
