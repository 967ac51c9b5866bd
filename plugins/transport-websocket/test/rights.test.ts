/** What becomes of an open socket while the rights of its caller change. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket } from '../../../test/support/live-socket.js';
import { ASSISTANT, saying, TestServer } from '../../../test/support/test-server.js';

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

interface ErrorBody {
  readonly error: { readonly message: string };
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

/** What each message does, as the route does it. `undefined`: nothing that a scope guards. */
const AS_HTTP: Readonly<Record<string, { scope: string; send: (on: Began) => object; http: (on: Began) => [string, string] }>> = {
  'response.create': { scope: 'chat', send: () => ({ ...request, stream_id: 'a' }), http: () => ['POST', '/v1/responses'] },
  'response.cancel': {
    scope: 'chat',
    send: ({ response }) => ({ response_id: response }),
    http: ({ response }) => ['POST', `/v1/responses/${response}/cancel`],
  },
  'response.cancel of another turn': {
    scope: 'sessions:write',
    send: ({ watched }) => ({ response_id: watched }),
    http: ({ conversation }) => ['POST', `/v1/conversations/${conversation}/cancel`],
  },
  'svc:response.resume': {
    scope: 'sessions:read',
    send: ({ response }) => ({ response_id: response }),
    http: ({ response }) => ['GET', `/v1/responses/${response}`],
  },
  'svc:conversation.watch': {
    scope: 'sessions:read',
    send: ({ conversation }) => ({ conversation }),
    http: ({ conversation }) => ['GET', `/v1/conversations/${conversation}`],
  },
};

/** What runs while the messages are sent. */
interface Began {
  readonly response: string;
  readonly watched: string;
  readonly conversation: string;
}

t.test('S-76 every message on a socket needs the scope that HTTP wants for the same', async (t) => {
  const all = ['chat', 'sessions:read', 'sessions:write'];
  answer(() => granting(...all));
  const app = await TestServer.start(t, liveConfig('{}', `${ASSISTANT}auth: { provider: { use: ./provider.mjs } }\n`), {
    files: PROVIDER,
  });
  const authorization = 'Bearer any';
  const end = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['a', end.promise] }, { text: ['b', end.promise] });
  const live = await LiveSocket.open(t, app, { token: 'any' });
  live.create(request);
  const response = (await live.next()).response?.id ?? '';
  const { body } = await app.request('POST', '/v1/conversations', { authorization }, { agent: 'assistant', id: 'c' });
  const conversation = (body as { id: string }).id;
  live.send({ type: 'svc:conversation.watch', conversation });
  const chat = app.open(saying('Hello', { session_id: 'c' }), { authorization });
  await live.until('svc:response.input');
  const watched = live.events.findLast(({ type }) => type === 'response.created')?.response?.id ?? '';
  t.not(watched, response);

  live.send({ type: 'none' });
  const [{ error }] = [(await live.turn()).at(-1) ?? {}] as [{ error?: { message: string } }];
  const types = [...(error?.message.matchAll(/'([\w:]+(?:\.\w+)?)'/g) ?? [])].map(([, type]) => type);
  const known = new Set(Object.keys(AS_HTTP).map((name) => name.split(' ')[0]));
  t.same(new Set(types.slice(2)), known.add('svc:ping'), 'each message is in the table');

  for (const [name, { scope, send, http }] of Object.entries(AS_HTTP)) {
    answer(() => granting(...all.filter((one) => one !== scope)));
    const began = { response, watched, conversation };
    const [method, path] = http(began);
    const { status, body } = await app.request(method, path, { authorization }, method === 'GET' ? undefined : request);
    t.match(
      { status, body },
      { status: 403, body: { error: { message: `This API token lacks the scope \`${scope}\`.` } } },
      path,
    );
    live.send({ type: name.split(' ')[0], ...send(began) });
    t.match(
      (await live.turn()).at(-1),
      { type: 'error', status: 403, error: { message: (body as ErrorBody).error.message } },
      name,
    );
  }
  answer(() => granting(...all));
  end.resolve();
  t.match((await (await chat).end()).done, true, 'nothing was cancelled');
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
