/** What becomes of an open socket while the rights of its caller change. */
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { ASSISTANT, TestServer } from '../support/test-server.js';
import { LiveSocket } from './support/live-socket.js';

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
  t.match(await live.refuse({ ...request, stream_id: 'lane' }), {
    status: 403,
    stream_id: 'lane',
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
