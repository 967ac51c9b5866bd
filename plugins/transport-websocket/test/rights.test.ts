/** What becomes of an open socket while the rights of its caller change. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket } from '../../../test/support/live-socket.js';
import { ASSISTANT, TestServer } from '../../../test/support/test-server.js';

/** Where the plugin finds the function of the test: both run in one process. */
const AUTHENTICATE = Symbol.for('rights-tests.authenticate');

const PROVIDER = {
  'provider.mjs': `
    import { AuthProviders, definePlugin } from '@plugboard/kernel';
    export default definePlugin({
      name: 'provider', apiVersion: 1, summary: 'Asks the test', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(AuthProviders, {
        authenticate: ({ bearer }) => globalThis[Symbol.for('rights-tests.authenticate')](bearer),
      }),
    });
  `,
};

function answer(authenticate: () => object): void {
  Object.assign(globalThis, { [AUTHENTICATE]: authenticate });
}

/** A second provider, which stays when the first one is removed. */
const OTHER = {
  'other.mjs': `
    import { AuthProviders, definePlugin } from '@plugboard/kernel';
    export default definePlugin({
      name: 'other', apiVersion: 1, summary: 'Knows nobody', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(AuthProviders, { authenticate: () => undefined }),
    });
  `,
};

const granting = (...scopes: string[]) => ({ principal: { project: 'default', tokenId: 'one', scopes } });
const request = { model: 'assistant', input: 'x' };

t.test('S-12 rights are checked for each message: a socket whose token lost `chat` creates nothing', async (t) => {
  answer(() => granting('chat'));
  const app = await TestServer.start(t, liveConfig('{}', `${ASSISTANT}auth: { provider: { use: ./provider.mjs } }\n`), {
    files: PROVIDER,
  });
  const live = await LiveSocket.open(t, app, { token: 'any' });
  t.match(await live.ask(request), { status: 'completed' });
  answer(() => granting('models:read'));
  t.match(await live.refuse({ ...request, stream_id: 'a' }), {
    status: 403,
    stream_id: 'a',
    error: { type: 'svc_error', code: 'agent_forbidden', message: 'This API token lacks the scope `chat`.', param: null },
  });
  t.equal(app.models.requests.length, 1);
  answer(() => granting('chat'));
  t.match(await live.ask(request), { status: 'completed' }, 'the connection stays open');
});

t.test('S-12 while an auth provider fails, open sockets stay open and create nothing', async (t) => {
  const clock = new ManualClock();
  answer(() => granting('chat'));
  const app = await TestServer.start(t, liveConfig('{}', `${ASSISTANT}auth: { provider: { use: ./provider.mjs } }\n`), {
    files: PROVIDER,
    clock,
  });
  const live = await LiveSocket.open(t, app, { token: 'any' });
  answer(() => {
    throw new Error('the directory is down');
  });
  const refused = await live.refuse(request);
  t.match(refused, { status: 503, error: { code: String, message: String } });
  t.notMatch(JSON.stringify(refused), /directory/);
  for (let second = 0; second < 12; second++) {
    clock.advance(1_000);
    await live.roundTrip();
  }
  t.equal(live.ws.readyState, live.ws.OPEN);
  answer(() => granting('chat'));
  t.match(await live.ask(request), { status: 'completed' });
  answer(() => ({ refused: 'expired' }));
  live.create(request);
  t.same(await live.closed, { code: 4401, reason: 'token_revoked' });
});

t.test('S-14 resuming on a socket needs the scope sessions:read, as it does over HTTP', async (t) => {
  answer(() => granting('chat'));
  const app = await TestServer.start(t, liveConfig('{}', `${ASSISTANT}auth: { provider: { use: ./provider.mjs } }\n`), {
    files: PROVIDER,
  });
  const live = await LiveSocket.open(t, app, { token: 'any' });
  const { id } = await live.ask(request);
  live.send({ type: 'svc:response.resume', response_id: id });
  t.match(await live.next(), { status: 403, error: { message: 'This API token lacks the scope `sessions:read`.' } });
  t.equal((await app.get(`/v1/responses/${id}`, { authorization: 'Bearer any' })).status, 403);
  answer(() => granting('chat', 'sessions:read'));
  live.send({ type: 'svc:response.resume', response_id: id });
  t.match((await live.turn()).at(-1), { type: 'response.completed', response: { id } });
  answer(() => ({ refused: 'revoked' }));
  live.send({ type: 'svc:response.resume', response_id: id });
  t.same(await live.closed, { code: 4401, reason: 'token_revoked' });
});

t.test('C-216 S-12 a socket of an ephemeral token is closed when a reload removes its provider', async (t) => {
  const clock = new ManualClock();
  const granted = granting('chat');
  answer(() => ({ ...granted, renew: () => granted }));
  const config = (providers: string) => liveConfig('{}', `${ASSISTANT}auth: { ${providers} }\n`);
  const both = 'provider: { use: ./provider.mjs }, other: { use: ./other.mjs }';
  const app = await TestServer.start(t, config(both), { files: { ...PROVIDER, ...OTHER }, clock });
  const live = await LiveSocket.open(t, app, { token: 'once' });
  answer(() => ({ refused: 'used' }));
  t.match(await live.ask(request), { status: 'completed' }, 'its provider renews it');
  await writeFile(join(app.started.folder, 'plugboard.yaml'), config('other: { use: ./other.mjs }'));
  t.equal((await app.started.server.reload()).refused, undefined);
  t.match((await live.refuse(request)).error, { code: 'invalid_api_key' });
  t.same(await live.closed, { code: 4401, reason: 'token_revoked' });
});
