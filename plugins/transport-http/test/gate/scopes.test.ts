import type { AuthProvider, Principal } from '@plugboard/kernel';
import type { Scope } from '@plugboard/kernel/contracts';
import t from 'tap';
import { HttpError } from '../../src/index.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

/** Knows tokens that are called by their scopes: `chat+admin`. */
const byName: AuthProvider = {
  authenticate: ({ bearer }) => {
    const scopes = (bearer ?? '').split('+').filter((name): name is Scope => name !== 'none') as Scope[];
    const principal: Principal = { project: 'acme', token: `ci ${bearer}`, tokenId: `tok_${bearer}`, scopes };
    return { principal };
  },
};

const ok = () => ({ status: 200, body: {} });
const routes = [
  get('/v1/any', ok, []),
  get('/v1/models', ok, ['models:read']),
  get('/v1/both', ok, ['sessions:read', 'sessions:write']),
  { ...echo('/v1/chat'), access: ['chat'] as const },
];

const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

t.test('S-14 a route requires all its scopes; the 403 names a missing one', async (t) => {
  const { url } = await serve(t, { routes, providers: [byName] });
  for (const [path, token, missing] of [
    ['/v1/any', 'none', undefined],
    ['/v1/models', 'models:read', undefined],
    ['/v1/models', 'none', 'models:read'],
    ['/v1/models', 'chat+admin', 'models:read'],
    ['/v1/both', 'sessions:read+sessions:write', undefined],
    ['/v1/both', 'sessions:write', 'sessions:read'],
    ['/v1/both', 'sessions:read', 'sessions:write'],
  ] as const) {
    const reply = await fetch(url + path, bearing(token));
    t.equal(reply.status, missing === undefined ? 200 : 403, `${path} with ${token}`);
    if (missing === undefined) continue;
    t.strictSame(await reply.json(), {
      error: { message: `This API token lacks the scope \`${missing}\`.`, code: 'insufficient_scope' },
    });
  }
});

t.test('S-10 the open scope has all scopes except admin', async (t) => {
  const { url } = await serve(t, { routes: [...routes, get('/v1/admin', ok, ['admin'])] });
  for (const path of ['/v1/any', '/v1/models', '/v1/both']) t.equal((await fetch(url + path)).status, 200, path);
  const refused = await fetch(`${url}/v1/admin`);
  t.equal(refused.status, 403);
  const message = 'This needs the scope `admin`, which callers of an open server do not have: configure a provider under `auth`.';
  t.match(await refused.json(), { error: { message, code: 'insufficient_scope' } }, 'there is no token that could lack it');
});

t.test('S-17 scopes are checked before the body is read', async (t) => {
  const { port } = await serve(t, { routes, providers: [byName] });
  const client = await RawClient.open(port);
  client.send('POST /v1/chat HTTP/1.1', 'Host: x', 'Authorization: Bearer none', 'Content-Length: 1000000', '', '{');
  t.equal(replyOf(await client.ended()).status, 403);
});

t.test('every 403 is audited with the token', async (t) => {
  const outOfReach = get('/v1/agent', () => {
    throw new HttpError(403, 'The agent is out of reach.');
  });
  const { url, logs, stop } = await serve(t, { routes: [...routes, outOfReach], providers: [byName] });
  await fetch(`${url}/v1/models`, bearing('chat'));
  await fetch(`${url}/v1/agent`, bearing('chat'));
  await fetch(`${url}/v1/any`, bearing('chat'));
  await fetch(`${url}/v1/nowhere`, bearing('chat'));
  await stop();
  const who = { log: 'audit', level: 'info', project: 'acme', token_id: 'tok_chat', token_name: 'ci chat', request_id: /^req_/ };
  t.match(
    logs.filter(({ event }) => event !== undefined),
    [
      { ...who, event: 'forbidden', route: '/v1/models', scope: 'models:read' },
      { ...who, event: 'forbidden', route: '/v1/agent', scope: undefined },
    ],
  );
  t.match(
    logs.filter(({ msg }) => msg === 'request').map(({ scope }) => scope),
    ['models:read', undefined, undefined, undefined],
  );
});
