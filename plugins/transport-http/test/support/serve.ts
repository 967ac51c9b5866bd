import {
  AgentRuntimes,
  type AuthProvider,
  AuthProviders,
  type Clock,
  type HostView,
  type Lifecycle,
  Transports,
} from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { type LogLine, ManualClock, testContext } from '@plugboard/testing';
import type { Middleware } from 'koa';
import type { Test } from 'tap';
import plugin, { HttpMiddleware, type HttpRoute, HttpRoutes, type HttpUpgrade, HttpUpgrades } from '../../src/index.js';

interface ServeOptions {
  readonly routes?: readonly HttpRoute[];
  readonly upgrades?: readonly HttpUpgrade[];
  readonly providers?: readonly AuthProvider[];
  readonly middleware?: readonly Middleware[];
  readonly config?: Readonly<Record<string, unknown>>;
  readonly clock?: Clock;
  /** The memory of callers, in bytes. */
  readonly memory?: number;
  readonly host?: HostView;
  readonly runtime?: AgentRuntime;
}

interface Served {
  readonly url: string;
  readonly port: number;
  readonly logs: readonly LogLine[];
  /** The lines of the access log. */
  requests(): readonly LogLine[];
  /** Bytes of the memory of callers that are in use. */
  memoryUsed(): number;
  readonly lifecycle: Lifecycle;
  stop(signal?: AbortSignal): Promise<void>;
}

/**
 * Starts the plugin on a free port, with real sockets, until the test is over. The clock stands
 * still unless the test gives another.
 */
export async function serve(
  t: Test,
  {
    routes = [],
    upgrades = [],
    providers = [],
    middleware = [],
    config,
    clock = new ManualClock(),
    memory,
    host,
    runtime,
  }: ServeOptions = {},
): Promise<Served> {
  const ctx = testContext(plugin, {
    config: { port: 0, ...config },
    entry: 'transports.http',
    clock,
    check: { literal: () => 'open', entries: () => providers.map((_, at) => String(at)) },
    ...(host && { host }),
  });
  if (memory !== undefined) ctx.budgets.memory.resize(memory);
  for (const route of routes) ctx.provide(HttpRoutes, route, 'routes');
  for (const upgrade of upgrades) ctx.provide(HttpUpgrades, upgrade, 'upgrades');
  for (const one of middleware) ctx.provide(HttpMiddleware, one, 'middleware');
  for (const provider of providers) ctx.provide(AuthProviders, provider, 'provider');
  if (runtime) ctx.provide(AgentRuntimes, runtime, 'runtime');
  await ctx.lifecycle.start?.(new AbortController().signal);
  const stop = async (signal = new AbortController().signal) => ctx.lifecycle.stop?.(signal);
  t.teardown(() => stop(AbortSignal.abort()).catch(() => {}));
  const url = String(ctx.contributed(Transports).address());
  return {
    url,
    port: Number(new URL(url).port),
    logs: ctx.logs,
    requests: () => ctx.logs.filter(({ msg }) => msg === 'request'),
    memoryUsed: () => ctx.budgets.memory.used,
    lifecycle: ctx.lifecycle,
    stop,
  };
}
