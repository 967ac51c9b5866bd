import { SCOPES } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import type { Access } from '@plugboard/transport-http';
import t from 'tap';
import { bearer } from '../../support/tokens.js';
import { startWithAllRoutes, tokenFor, tokensOf } from '../support/all-routes.js';
import { everyRoute, requiresToken } from '../support/every-route.js';
import { decisionOf, sendRaw } from '../support/send-raw.js';
import { treeOf } from '../support/tree.js';

/**
 * Every route of the distribution, and the scopes that it asks for. A new route is added here,
 * after asking: does it change the configuration, take a path, a module or a command, or read less
 * than its scope says?
 */
const ROUTES: Readonly<Record<string, Access>> = {
  'POST /v1/chat/completions': ['chat'],
  'GET /v1/conversations': ['sessions:read'],
  'POST /v1/conversations': ['sessions:write'],
  'GET /v1/conversations/:id': ['sessions:read'],
  'POST /v1/conversations/:id': ['sessions:write'],
  'DELETE /v1/conversations/:id': ['sessions:write'],
  'POST /v1/conversations/:id/fork': ['sessions:read', 'sessions:write'],
  'POST /v1/conversations/:id/cancel': ['sessions:write'],
  'GET /v1/conversations/:id/items': ['sessions:read'],
  'POST /v1/conversations/:id/items': ['sessions:write'],
  'GET /v1/conversations/:id/items/:item': ['sessions:read'],
  'GET /v1/conversations/:id/turns': ['sessions:read'],
  'GET /v1/approvals': { anyOf: ['approve', 'chat'] },
  'POST /v1/approvals/:id': [],
  'POST /v1/messages': ['chat'],
  'POST /v1/messages/count_tokens': ['chat'],
  'GET /v1/messages/*rest': ['chat'],
  'POST /v1/messages/*rest': ['chat'],
  'DELETE /v1/messages/*rest': ['chat'],
  'GET /v1/agents/:name': ['models:read'],
  'GET /v1/agents/:name/tools/:entry/:tool': ['models:read'],
  'POST /v1/agents/:name/tools/:entry/:tool': [],
  'GET /v1/models': ['models:read'],
  'GET /v1/models/*id': ['models:read'],
  'GET /health': 'public',
  'GET /healthz': 'public',
  'GET /readyz': 'public',
  'GET /v1/status': { orOpen: ['admin'] },
  'POST /v1/responses': ['chat'],
  'POST /v1/responses/compact': ['chat'],
  'POST /v1/responses/input_tokens': ['chat'],
  'GET /v1/responses/:response_id': ['sessions:read'],
  'GET /v1/responses/:response_id/input_items': ['sessions:read'],
  'DELETE /v1/responses/:response_id': ['sessions:write'],
  'POST /v1/responses/:response_id/cancel': ['chat'],
  'POST /v1/ephemeral_tokens': [],
  'GET /playground': 'page',
  'GET /playground/*file': 'page',
  'GET /playground/settings.json': 'page',
  'GET /': 'page',
  'HEAD /': 'page',
  'HEAD /api/hello': 'page',
};

/** The paths of WebSockets, which ask for the scope `chat` as a GET. */
const UPGRADES = ['/v1/live', '/v1/responses'];
/** Paths that a GET route matches besides its own: an upgrade, or a route with a parameter. */
const MATCHED_BY_GET = ['/v1/responses', '/v1/responses/compact', '/v1/responses/input_tokens', '/v1/messages/count_tokens'];

/** Where other servers let their configuration be changed, plugins be loaded or keys be made. */
const ADMINISTRATION = [
  '/admin',
  '/api/config',
  '/api/tokens',
  '/config',
  '/debug/pprof',
  '/key/generate',
  '/metrics',
  '/reload',
  '/v1/admin',
  '/v1/agents',
  '/v1/api_keys',
  '/v1/config',
  '/v1/config/apply',
  '/v1/files',
  '/v1/mcp/servers',
  '/v1/models/reload',
  '/v1/organization/admin_api_keys',
  '/v1/plugins',
  '/v1/tools',
];

t.test('S-10 the list of all routes of the distribution has none that changes the configuration', async (t) => {
  const server = await startWithAllRoutes(t);
  t.strictSame(Object.fromEntries(everyRoute(server).map(({ route, access }) => [route, access])), ROUTES);
  t.strictSame(
    [
      ...new Set(
        // two routes may share a path, each for some of its requests
        (server.started.server as HostServer).inspection
          .descriptions()
          .flatMap(({ kind, label, text }) => (kind === 'route' ? [`${label} ${text}`] : [])),
      ),
    ].sort(),
    [...Object.keys(ROUTES), ...UPGRADES.map((path) => `GET ${path}`)].sort(),
    'and `plugboard plugins` shows them all',
  );
});

for (const [who, auth, headers] of [
  ['a token with the scope admin', undefined, bearer(tokenFor('admin'))],
  ['a caller of an open server', '', {}],
] as const) {
  t.test(`S-10 ${who} cannot administer the server or change a file`, async (t) => {
    const server = await startWithAllRoutes(t, auth === undefined ? {} : { auth });
    const entries = server.started.server.host.entries();
    const before = treeOf(server.started.folder, { but: /^data\// });
    for (const path of ADMINISTRATION) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
        const reply = await fetch(server.url + path, {
          method,
          headers: { ...headers, 'content-type': 'application/json' },
          ...(method === 'GET'
            ? {}
            : { body: JSON.stringify({ agents: { evil: { model: 'fast' } }, plugins: { x: { use: './x.js' } } }) }),
        });
        t.ok([403, 404, 405].includes(reply.status), `${method} ${path}: ${reply.status}`);
      }
    }
    t.same(server.started.server.host.entries(), entries);
    t.same(treeOf(server.started.folder, { but: /^data\// }), before);
  });
}

t.test('S-14 a token with one scope is accepted only by routes that require no other scope', async (t) => {
  const server = await startWithAllRoutes(t);
  for (const call of everyRoute(server)) {
    const wanted = ROUTES[call.route] ?? call.access;
    for (const scope of SCOPES) {
      const told = await sendRaw(server, call, [['authorization', `Bearer ${tokenFor(scope)}`]]);
      const scopes = scopesOf(wanted);
      const isOneOf = typeof wanted !== 'string' && 'anyOf' in wanted && wanted.anyOf.includes(scope);
      const mayCall = isOneOf || scopes.every((one) => one === scope);
      t.equal(decisionOf(told), mayCall ? 'let in' : 'forbidden', `${scope}: ${call.route}`);
      if (mayCall) continue;
      const lacking = scopes.find((one) => one !== scope);
      const message = `This API token lacks the scope \`${lacking}\`.`;
      const isMessages = call.path.startsWith('/v1/messages');
      t.match(JSON.parse(told.text), { error: { message, type: isMessages ? 'permission_error' : 'svc_error' } });
    }
    const usual = await sendRaw(server, call, [['authorization', `Bearer ${tokensOf(call.access).strong}`]]);
    t.equal(decisionOf(usual), 'let in', call.route);
  }
});

t.test('S-14 HEAD requires the scopes of GET, and unusual methods are not accepted', async (t) => {
  const server = await startWithAllRoutes(t);
  for (const call of everyRoute(server).filter(requiresToken)) {
    for (const method of ['HEAD', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'TRACE']) {
      const asked = { ...call, method, takesJson: false };
      t.equal(decisionOf(await sendRaw(server, asked)), 'unknown', `${method} ${call.path}`);
      const weak = await sendRaw(server, asked, [['authorization', `Bearer ${tokensOf(call.access).weak}`]]);
      const isRead =
        method === 'HEAD' &&
        (MATCHED_BY_GET.includes(call.path) ||
          everyRoute(server).some(({ method, path }) => method === 'GET' && path === call.path));
      t.equal(weak.status, isRead ? 403 : 405, `${method} ${call.path}`);
      for (const header of ['x-http-method', 'x-http-method-override', 'x-method-override']) {
        t.same(await sendRaw(server, asked, [[header, 'GET']]), await sendRaw(server, asked), header);
      }
    }
  }
});

function scopesOf(access: Access): readonly string[] {
  if (typeof access === 'string') return [];
  if ('anyOf' in access) return access.anyOf;
  return 'orOpen' in access ? access.orOpen : access;
}
