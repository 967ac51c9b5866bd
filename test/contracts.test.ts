import { randomBytes } from 'node:crypto';
import {
  AgentRuntimes,
  AuthProviders,
  type ExtensionPoint,
  Interceptors,
  ModelConnectors,
  SessionStores,
  ToolSources,
  Transports,
} from '@plugboard/kernel';
import { type AgentRuntime, Commands } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import {
  agentRuntimeContract,
  authProviderContract,
  commandContract,
  startServer,
  testContext,
  transportContract,
} from '@plugboard/testing';
import { StreamEncoders } from '@plugboard/transport-chat-completions';
import { streamEncoderContract } from '@plugboard/transport-chat-completions/testing';
import http, { HttpRoutes, HttpUpgrades } from '@plugboard/transport-http';
import { httpRouteContract, httpUpgradeContract } from '@plugboard/transport-http/testing';
import t, { type Test } from 'tap';

/**
 * Runs the contract suites on everything that the bundled plugins contribute in a running server.
 * Tools, models and stores have theirs in the tests of their packages.
 */

const TOKEN = randomBytes(20).toString('hex');
const server = await startServer(`
  transports:
    http: { port: 0 }
    chat-completions: {}
    models: {}
    health: {}
    sse: {}
    responses: {}
    websocket: {}
    conversations: {}
    playground: {}
    messages: {}
  auth: { bearer: { tokens: [{ name: test, project: default, token: "${TOKEN}" }] } }
  models: { demo: {} }
  agents: { assistant: { model: demo } }
  defaultAgent: assistant
`);
t.teardown(() => server.stop());

/** A request that each of these routes answers. The others may refuse one. */
const REQUESTS: Readonly<Record<string, object>> = {
  'POST /v1/chat/completions': { body: { model: 'assistant', messages: [{ role: 'user', content: 'Hello' }] } },
  'POST /v1/responses': { body: { model: 'assistant', input: 'Hello' } },
  'POST /v1/messages': { body: { model: 'assistant', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] } },
  'POST /v1/messages/count_tokens': { body: { model: 'assistant', messages: [{ role: 'user', content: 'Hello' }] } },
  'HEAD /': {},
  'HEAD /api/hello': {},
  'GET /v1/models': {},
  'GET /health': {},
  'GET /healthz': {},
  'GET /readyz': {},
  'GET /playground': {},
};

/** Runs a suite for each contribution. */
function each<T>(point: ExtensionPoint<T>, suite: (t: Test, value: T, name: string) => void): void {
  const all = server.server.extensions(point).all();
  t.test(`${point}: every contribution fulfils its contract`, async (t) => {
    t.ok(all.length > 0, 'there are contributions');
    for (const { name, entry, value } of all) {
      t.test(`${entry} ${name}`, async (t) => suite(t, value, name));
    }
  });
}

each(HttpRoutes, (t, route) => {
  const request = REQUESTS[`${route.method} ${route.path}`];
  httpRouteContract(t.test, { open: () => route, ...(request && { request: { headers: {}, ...request } }) });
});
each(HttpUpgrades, (t, upgrade) => httpUpgradeContract(t.test, { open: () => upgrade }));
each(StreamEncoders, (t, encoder) => streamEncoderContract(t.test, { encoder }));
each(Commands, (t, command) => commandContract(t.test, { command }));
each(AgentRuntimes, (t, runtime: AgentRuntime) => agentRuntimeContract(t.test, { open: () => runtime, agent: 'assistant' }));
each(AuthProviders, (t, provider) => {
  authProviderContract(t.test, {
    open: () => provider,
    valid: { bearer: TOKEN },
    foreign: { bearer: 'eyJhbGciOiJFUzI1NiJ9.e30.c2ln' },
    refused: [{ bearer: `svcp_${'x'.repeat(40)}` }],
  });
});

t.test(`${Transports}: transport-http fulfils its contract`, async (t) => {
  const open = () => {
    const ctx = testContext(http, { config: { port: 0 } });
    return { transport: ctx.contributed(Transports), lifecycle: ctx.lifecycle };
  };
  transportContract(t.test, { open });
});

t.test('every extension point that a plugin uses has a suite', async (t) => {
  const inOwnPackages = [ModelConnectors, SessionStores, ToolSources, Interceptors];
  const here = [HttpRoutes, HttpUpgrades, StreamEncoders, Commands, AgentRuntimes, AuthProviders, Transports];
  const known = new Set([...inOwnPackages, ...here].map(({ id }) => id));
  const used = new Set(
    (server.server as HostServer).inspection.plugins.flatMap(({ provides }) => provides.map(({ point }) => point)),
  );
  t.same(
    [...used].filter((id) => !known.has(id)),
    ['open-responses.service'],
    'only the service that the transports of open-responses share has none: it is not public',
  );
});
