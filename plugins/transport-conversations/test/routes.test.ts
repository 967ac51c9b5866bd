import { AgentRuntimes } from '@plugboard/kernel';
import { type AgentRuntime, type Conversations, OPEN, TurnError } from '@plugboard/kernel/contracts';
import { ProtocolError } from '@plugboard/openai-protocol';
import { testContext } from '@plugboard/testing';
import { type HttpRequest, HttpRoutes } from '@plugboard/transport-http';
import t from 'tap';
import plugin from '../src/index.js';

const read = ['sessions:read'];
const write = ['sessions:write'];

/**
 * What each route takes to be called, what may come with it, and whether a server about to stop
 * refuses it.
 */
const ROUTES: Readonly<Record<string, readonly [access: readonly string[], body: string, startsWork: boolean]>> = {
  'GET /v1/conversations': [read, 'none', false],
  'POST /v1/conversations': [write, 'json', true],
  'GET /v1/conversations/:id': [read, 'none', false],
  'POST /v1/conversations/:id': [write, 'json', false],
  'DELETE /v1/conversations/:id': [write, 'none', false],
  'POST /v1/conversations/:id/fork': [[...read, ...write], 'json', true],
  'POST /v1/conversations/:id/cancel': [write, 'none', false],
  'GET /v1/conversations/:id/items': [read, 'none', false],
  'POST /v1/conversations/:id/items': [write, 'json', true],
  'GET /v1/conversations/:id/items/:item': [read, 'none', false],
  'GET /v1/conversations/:id/turns': [read, 'none', false],
};

/** The plugin over a runtime that knows nothing but these. */
function bench(conversations: Partial<Conversations> = {}) {
  const context = testContext(plugin, { entry: 'transports.conversations' });
  context.provide(AgentRuntimes, { conversations } as Partial<AgentRuntime> as AgentRuntime);
  return {
    context,
    ask: async (name: string, request: Partial<HttpRequest> = {}) =>
      context.contributed(HttpRoutes, name).handle({
        params: { id: 'conv_1' },
        query: new URLSearchParams(),
        body: undefined,
        principal: OPEN,
        ...request,
      } as HttpRequest),
  };
}

t.test('S-14 the list of routes and their scopes is complete', async (t) => {
  const { context } = bench();
  t.strictSame(
    context
      .contributions()
      .filter(({ point }) => point === HttpRoutes.id)
      .map(({ name }) => name)
      .sort(),
    Object.keys(ROUTES).sort(),
  );
  for (const [name, facts] of Object.entries(ROUTES)) {
    const { method, path, access, body, startsWork } = context.contributed(HttpRoutes, name);
    t.equal(`${method} ${path}`, name);
    t.strictSame([access, body, startsWork], facts, name);
  }
});

t.test('errors of the runtime have their status, and reads of a failed store may be retried', async (t) => {
  const failing = async () => {
    throw new TurnError('store_failed', 'The session store failed.');
  };
  const refused = (name: string, request?: Partial<HttpRequest>) =>
    bench({ get: failing, list: failing, delete: failing, setMetadata: failing })
      .ask(name, request)
      .then(
        () => undefined,
        (error) => (error instanceof ProtocolError ? { status: error.status, ...error.headers } : error),
      );
  t.strictSame(await refused('GET /v1/conversations/:id'), { status: 502 });
  t.strictSame(await refused('GET /v1/conversations'), { status: 502 });
  t.strictSame(await refused('DELETE /v1/conversations/:id'), { status: 502, 'x-should-retry': 'false' });
  const body = { metadata: {} };
  t.strictSame(await refused('POST /v1/conversations/:id', { body }), { status: 502, 'x-should-retry': 'false' });
});

t.test('a defect is rethrown', async (t) => {
  const get = async () => {
    throw new TypeError('a defect');
  };
  await t.rejects(bench({ get }).ask('GET /v1/conversations/:id'), TypeError);
});

t.test('a change without metadata is refused', async (t) => {
  const error = await bench()
    .ask('POST /v1/conversations/:id', { body: {} })
    .catch((error) => error);
  t.match(error, { status: 400, body: { error: { param: 'metadata', code: 'missing_required_parameter' } } });
});

t.test('C-193 filters of the list are passed on, and others are refused', async (t) => {
  let asked: unknown;
  const list: Conversations['list'] = async (page) => {
    asked = page;
    return [];
  };
  const ask = (query: string) => bench({ list }).ask('GET /v1/conversations', { query: new URLSearchParams(query) });
  await ask('agent=assistant&status=running&search=%20a%27%3B--%20&user=ann&limit=5&metadata=a:b:c');
  const page = { limit: 6, order: 'desc', after: undefined };
  t.strictSame(asked, {
    ...page,
    user: 'ann',
    agent: 'assistant',
    status: 'running',
    search: "a';--",
    metadata: { name: 'a', value: 'b:c' },
  });
  await ask('search=%20');
  const nothing = { user: undefined, agent: undefined, status: undefined, search: undefined, metadata: undefined };
  t.strictSame(asked, { ...page, limit: 21, ...nothing });
  const id = `conv_${'a1'.repeat(20)}`;
  await ask(`after=${id}_1700000000123`);
  t.match(asked, { after: { conversation: id, updatedAt: 1_700_000_000_123 } });
  for (const query of ['status=busy', 'status=', `search=${'x'.repeat(201)}`, 'search=a&search=b', 'metadata=a', 'metadata=:b']) {
    t.match(await ask(query).catch((error) => error), { status: 400, body: { error: { param: query.replace(/=.*/s, '') } } });
  }
});

t.test('times are in whole seconds', async (t) => {
  const get: Conversations['get'] = async () => ({
    id: { project: 'default', agent: 'assistant', key: 's' },
    conversation: 'conv_1',
    createdAt: 1_999,
    updatedAt: 3_001,
    turns: 2,
    bytes: 100,
    user: 'ann',
    title: 'Rain',
    metadata: { a: 'b' },
    status: 'quarantined',
  });
  t.strictSame(await bench({ get }).ask('GET /v1/conversations/:id'), {
    status: 200,
    headers: {},
    body: {
      id: 'conv_1',
      object: 'conversation',
      created_at: 1,
      title: 'Rain',
      metadata: { a: 'b' },
      status: 'quarantined',
      turns: 2,
      updated_at: 3,
      agent: 'assistant',
      key: 's',
    },
  });
});
