import { once } from 'node:events';
import type { Server } from 'node:http';
import {
  AgentRuntimes,
  AuthProviders,
  audit,
  type Extensions,
  type HostView,
  type Lifecycle,
  type Logger,
  type PluginContext,
  parseDuration,
  type Transport,
} from '@plugboard/kernel';
import { type AgentRuntime, type Reconfiguration, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { HttpApplication } from './application/application.js';
import type { HttpConfig } from './config.js';
import { Exchanges } from './exchange/exchanges.js';
import { LogThrottle } from './exchange/log-throttle.js';
import { Authentication } from './gate/authentication.js';
import { Revocation } from './gate/revocation.js';
import { HeapGuard } from './limits/heap-guard.js';
import { ClientErrorHandler } from './server/client-error-handler.js';
import { Connections } from './server/connections.js';
import { EmbeddedHandler } from './server/embedded-handler.js';
import { createNodeServer, setTimeouts } from './server/node-server.js';

/** Milliseconds that aborted replies have to send an error, once the drain time is over. */
const ABORT_GRACE = 4_000;

/** Milliseconds that replies have on a server whose runtime does not say how long turns have. */
const DEFAULT_DRAIN = 30_000;

/**
 * The HTTP server of an entry.
 *
 * 1. It starts after the plugins that contribute routes and auth providers, and stops before them.
 * 2. While it stops, it refuses new work with 503 but keeps listening until the last reply has
 *    ended.
 * 3. `reconfigure` replaces everything behind the listening socket. Connections stay open.
 * 4. With `listen: false` there is no socket: another server passes requests to `handler`, and goes
 *    on listening when this one has stopped.
 * 5. After `drain`, or less if the host gives it less time, it aborts the requests that still run.
 *    Four seconds later it closes their connections.
 */
export class HttpTransport implements Transport, Lifecycle {
  #config: HttpConfig;
  readonly #entry: string;
  readonly #log: Logger;
  readonly #host: HostView;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #application: HttpApplication;
  readonly #authentication: Authentication;
  readonly #revocation: Revocation;
  readonly #exchanges: Exchanges;
  readonly #throttle: LogThrottle;
  readonly #connections: Connections;
  readonly #clientErrors: ClientErrorHandler;
  /** For the program that embeds the server, if it does not listen. */
  readonly handler: EmbeddedHandler;
  readonly #heapGuard: HeapGuard;
  #open = false;
  #isRunning = false;
  /** Undefined if it does not listen. */
  #server: Server | undefined;
  #stopped: Promise<void> | undefined;

  constructor(
    @inject(CONTEXT) { config, entry, log, host, extensions }: PluginContext<HttpConfig>,
    @inject(HttpApplication) application: HttpApplication,
    @inject(Authentication) authentication: Authentication,
    @inject(Revocation) revocation: Revocation,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(LogThrottle) throttle: LogThrottle,
    @inject(Connections) connections: Connections,
    @inject(ClientErrorHandler) clientErrors: ClientErrorHandler,
    @inject(EmbeddedHandler) handler: EmbeddedHandler,
    @inject(HeapGuard) heapGuard: HeapGuard,
  ) {
    this.#config = config;
    this.#entry = entry;
    this.#log = log;
    this.#host = host;
    this.#runtimes = extensions(AgentRuntimes);
    this.#application = application;
    this.#authentication = authentication;
    this.#revocation = revocation;
    this.#exchanges = exchanges;
    this.#throttle = throttle;
    this.#connections = connections;
    this.#clientErrors = clientErrors;
    this.handler = handler;
    this.#heapGuard = heapGuard;
  }

  get stopLimit(): number {
    return this.#drain + ABORT_GRACE + 1_000;
  }

  /** Milliseconds that running replies have. */
  get #drain(): number {
    const { drain } = this.#config;
    if (drain !== undefined) return parseDuration(drain);
    return this.#runtimes.all().at(0)?.value.drainLimit ?? DEFAULT_DRAIN;
  }

  /** @throws Error if the port is taken, a route is served twice, or `auth` has no provider. */
  async start(signal: AbortSignal): Promise<void> {
    this.#open = this.#authentication.open;
    if (this.#open) assertMeantToBeOpen(authEntries(this.#host));
    this.#application.start();
    if (this.#config.listen) this.#server = await this.#listen(signal);
    this.handler.open();
    this.#isRunning = true;
    this.#heapGuard.start();
    this.#revocation.start();
    const address = this.address();
    if (address === undefined) {
      if (this.#open) this.#warnOpen();
    } else if (this.#open) {
      // The program itself warns on standard output that the server is open: one line is enough
      // here.
      audit(this.#log, 'open_start', { address }, 'listening');
    } else {
      this.#log.info({ address }, 'listening');
    }
  }

  async #listen(signal: AbortSignal): Promise<Server> {
    const { host, port } = this.#config;
    const server = createNodeServer(this.#config, this.#application, this.#connections, this.#clientErrors);
    try {
      await once(server.listen({ host, port }), 'listening');
    } catch (error) {
      throw listenError(error as NodeJS.ErrnoException, this.#entry, this.#config);
    }
    if (signal.aborted) {
      server.close();
      throw signal.reason;
    }
    server.on('error', (error) => this.#log.error({ err: error }, 'the server failed to accept a connection'));
    return server;
  }

  /** @throws Error if a route is served twice, or no entry under `auth` authenticates. */
  reconfigure(next: Reconfiguration<HttpConfig>): () => void {
    const open = next.extensions(AuthProviders).all().length === 0;
    if (open) assertMeantToBeOpen(next.entries('auth').map((name) => `auth.${name}`));
    const applyRoutes = this.#application.reconfigure(next);
    return () => {
      this.#config = next.config;
      applyRoutes();
      if (this.#server) setTimeouts(this.#server, next.config);
      this.#connections.resize(next.config);
      if (open && !this.#open) this.#warnOpen();
      this.#open = open;
    };
  }

  address(): string | undefined {
    const address = this.#server?.address();
    if (typeof address !== 'object' || address === null) return undefined;
    return `http://${reachable(this.#config.host)}:${address.port}`;
  }

  /** @throws Error if replies had to be aborted. */
  stop(signal: AbortSignal, within = this.stopLimit): Promise<void> {
    const drain = Math.min(this.#drain, Math.max(0, within - ABORT_GRACE));
    this.#stopped ??= this.#stop(signal, drain);
    return this.#stopped;
  }

  async #stop(signal: AbortSignal, drain: number): Promise<void> {
    if (!this.#isRunning) return;
    const server = this.#server;
    const exchanges = this.#exchanges;
    exchanges.drain(() => server?.closeIdleConnections());
    server?.closeIdleConnections();
    await exchanges.idle(drain, signal);
    const aborted = exchanges.size;
    if (aborted > 0) {
      exchanges.cancel(new TurnError('stopped', 'The server stopped before the answer was complete.'));
      await exchanges.idle(ABORT_GRACE, signal);
      exchanges.destroy('draining');
    }
    this.handler.close();
    if (server) {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }
    this.#heapGuard.stop();
    this.#revocation.stop();
    this.#server = undefined;
    this.#isRunning = false;
    this.#log.info({ disconnects: exchanges.disconnects, suppressed_lines: this.#throttle.suppressed, aborted }, 'stopped');
    if (aborted > 0) {
      const replies = aborted === 1 ? '1 reply was' : `${aborted} replies were`;
      const setting = this.#config.drain === undefined ? '`limits.drain`' : `\`drain\` of ${this.#entry}`;
      const limit = drain < this.#drain ? `${drain / 1000} s` : `${drain / 1000} s (${setting})`;
      throw new Error(`${replies} still running after ${limit} and had to be aborted`);
    }
  }

  #warnOpen(): void {
    this.#log.warn(
      'the server is open: every caller can use every agent and model; configure a provider under `auth` to require credentials',
    );
    audit(this.#log, 'open_start', { address: this.address() }, 'the server requires no credentials');
  }
}

function authEntries(host: HostView): readonly string[] {
  return host.entries().flatMap(({ entry }) => (entry.startsWith('auth.') ? [entry] : []));
}

/** Refuses an open server when `auth` has entries but none of them provides authentication. */
function assertMeantToBeOpen(entries: readonly string[]): void {
  if (entries.length === 0) return;
  throw new Error(
    `${entries.join(', ')}: no entry under \`auth\` provides authentication, so the server would be open; use an auth plugin there, such as bearer`,
  );
}

/** The host to put into a URL for a server that listens on `host`. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** Explains why the server cannot listen, and how to fix it. */
export function listenError(cause: NodeJS.ErrnoException, entry: string, { host, port }: HttpConfig): Error {
  return new Error(explain(cause, entry, host, port), { cause });
}

function explain({ code, message }: NodeJS.ErrnoException, entry: string, host: string, port: number): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is in use by another program: stop that program, or set another \`port\` for ${entry} (0 picks a free one)`;
    case 'EACCES':
      return `port ${port} of ${host} is reserved by the system: set a \`port\` of 1024 or higher for ${entry}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine: set another \`host\` for ${entry}, such as 127.0.0.1 or 0.0.0.0`;
    default:
      return `${entry} cannot listen on port ${port} of ${host}: ${message}`;
  }
}
