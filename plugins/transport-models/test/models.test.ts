import { AgentRuntimes, type AuthProvider, AuthProviders, type Principal, Transports } from '@plugboard/kernel';
import type { AgentRuntime, TargetInfo } from '@plugboard/kernel/contracts';
import { pluginContract, testContext } from '@plugboard/testing';
import http, { HttpRoutes } from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';

const AGENTS: readonly TargetInfo[] = ['assistant', 'team/agent one', 'a%2Fb', 'müller'].map((name) => ({
  name,
  kind: 'agent',
  description: 'not shown',
}));
const MODELS: readonly TargetInfo[] = [{ name: 'fast', kind: 'model', description: undefined }];

interface ModelList {
  readonly data: readonly { readonly id: string }[];
}

/**
 * A project's token reaches its one agent; everybody else reaches all. Nothing but `list` is there
 * to be called.
 */
const runtime = {
  list: ({ project }: Principal) => (project === 'acme' ? AGENTS.slice(0, 1) : [...AGENTS, ...MODELS]),
} as Partial<AgentRuntime> as AgentRuntime;

const PRINCIPALS: Readonly<Record<string, Principal>> = {
  acme: { project: 'acme', scopes: ['models:read'] },
  chatty: { project: 'acme', scopes: ['chat'] },
};

const tokens: AuthProvider = {
  authenticate: ({ bearer }) => {
    const principal = PRINCIPALS[bearer ?? ''];
    return principal && { principal };
  },
};

async function serve(t: Test, providers: readonly AuthProvider[] = []): Promise<string> {
  const models = testContext(plugin, { entry: 'transports.models' });
  models.provide(AgentRuntimes, runtime);
  const server = testContext(http, { entry: 'transports.http', config: { port: 0 } });
  for (const path of ['/v1/models', '/v1/models/*id']) server.provide(HttpRoutes, models.contributed(HttpRoutes, path), 'models');
  for (const provider of providers) server.provide(AuthProviders, provider);
  await server.lifecycle.start?.(new AbortController().signal);
  t.teardown(() => server.lifecycle.stop?.(AbortSignal.abort()));
  return `${server.contributed(Transports).address()}/v1/models`;
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('C-155 C-156 the list has exactly the stated fields, agents first', async (t) => {
  const reply = await fetch(await serve(t));
  t.equal(reply.status, 200);
  t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  const agent = { object: 'model', created: 0, owned_by: 'svc:agent' };
  t.strictSame(await reply.json(), {
    object: 'list',
    data: [
      ...AGENTS.map(({ name }) => ({ id: name, ...agent })),
      { id: 'fast', object: 'model', created: 0, owned_by: 'svc:model' },
    ],
  });
});

t.test('C-158 a model is retrieved by its name, with slashes encoded or not', async (t) => {
  const url = await serve(t);
  for (const [path, id] of [
    ['assistant', 'assistant'],
    ['fast', 'fast'],
    ['team%2Fagent%20one', 'team/agent one'],
    ['team/agent%20one', 'team/agent one'],
    ['a%252Fb', 'a%2Fb'],
    ['m%C3%BCller', 'müller'],
  ]) {
    const reply = await fetch(`${url}/${path}`);
    t.equal(reply.status, 200, String(path));
    const { data } = (await (await fetch(url)).json()) as ModelList;
    t.strictSame(
      await reply.json(),
      data.find((model) => model.id === id),
    );
  }
});

t.test('C-158 an unknown name gets 404, and so does one out of scope', async (t) => {
  const open = await serve(t);
  const closed = await serve(t, [tokens]);
  for (const [url, id] of [
    [open, 'nobody'],
    [open, 'a%2'],
    [closed, 'fast'],
    [closed, 'm%C3%BCller'],
  ] as const) {
    const reply = await fetch(`${url}/${id}`, { headers: { authorization: 'Bearer acme' } });
    t.equal(reply.status, 404, id);
    const name = id === 'a%2' ? id : decodeURIComponent(id);
    t.strictSame(await reply.json(), {
      error: {
        message: `The model '${name}' does not exist`,
        type: 'invalid_request_error',
        param: 'model',
        code: 'model_not_found',
      },
    });
  }
});

t.test('C-144 C-145 the list contains what the caller may use', async (t) => {
  const url = await serve(t, [tokens]);
  t.equal((await fetch(url)).status, 401);
  const { data } = (await (await fetch(url, { headers: { authorization: 'Bearer acme' } })).json()) as ModelList;
  t.strictSame(
    data.map(({ id }) => id),
    ['assistant'],
  );
});

t.test('S-14 a token without the scope models:read gets 403', async (t) => {
  const url = await serve(t, [tokens]);
  for (const path of ['', '/assistant']) {
    const reply = await fetch(`${url}${path}`, { headers: { authorization: 'Bearer chatty' } });
    t.equal(reply.status, 403);
    t.strictSame(await reply.json(), {
      error: { message: 'This API token lacks the scope `models:read`.', type: 'svc_error' },
    });
  }
});

t.test('C-005 C-015 the list accepts GET and HEAD only', async (t) => {
  const url = await serve(t);
  const head = await fetch(url, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(await head.text(), '');
  const post = await fetch(url, { method: 'POST' });
  t.equal(post.status, 405);
  t.equal(post.headers.get('allow'), 'GET, HEAD, OPTIONS');
});
