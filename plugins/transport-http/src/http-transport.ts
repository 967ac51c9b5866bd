import { once } from 'node:events';
import type { Server } from 'node:http';
import {
  audit,
  CONFIG,
  ENTRY,
  HOST,
  type HostView,
  inject,
  injectable,
  type Lifecycle,
  LOGGER,
  type Logger,
  parseDuration,
  type Transport,
  TurnError,
} from '@plugboard/kernel';
import { HttpApplication } from './application/application.js';
import type { HttpConfig } from './config.js';
import { Exchanges } from './exchange/exchanges.js';
import { Authentication } from './gate/authentication.js';
import { Unreadable } from './server/client-error-handler.js';
import { listenError } from './server/listen-error.js';
import { createNodeServer } from './server/node-server.js';

/** What replies have left to say how they end, once the drain limit is over. */
const LAST_WORDS = 4_000;

/**
 * The HTTP server of an entry.
 *
 * 1. It starts after everything that opens routes on it and everyone who tells who calls, and stops before them.
 * 2. Told to stop, it takes no new work, but goes on listening so that callers are told so, until the last running reply has ended.
 * 3. Where that takes longer than `drain`, whoever works for a reply is told to come to an end; what is left four seconds later is cut.
 */
@injectable()
export class HttpTransport implements Transport, Lifecycle {
  readonly stopLimit: number;
  readonly #config: HttpConfig;
  readonly #entry: string;
  readonly #log: Logger;
  readonly #host: HostView;
  readonly #application: HttpApplication;
  readonly #authentication: Authentication;
  readonly #exchanges: Exchanges;
  readonly #unreadable: Unreadable;
  readonly #drain: number;
  #server: Server | undefined;
  #stopped: Promise<void> | undefined;

  constructor(
    @inject(CONFIG) config: HttpConfig,
    @inject(ENTRY) entry: string,
    @inject(LOGGER) log: Logger,
    @inject(HOST) host: HostView,
    @inject(HttpApplication) application: HttpApplication,
    @inject(Authentication) authentication: Authentication,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(Unreadable) unreadable: Unreadable,
  ) {
    this.#config = config;
    this.#entry = entry;
    this.#log = log;
    this.#host = host;
    this.#application = application;
    this.#authentication = authentication;
    this.#exchanges = exchanges;
    this.#unreadable = unreadable;
    this.#drain = parseDuration(config.drain);
    this.stopLimit = this.#drain + LAST_WORDS + 1_000;
  }

  /**
   * @throws Error where the port is not to be had, two entries open the same route, or `auth` has entries of which none tells
   * who calls.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { host, port } = this.#config;
    if (this.#authentication.open) this.#checkOpen();
    const server = createNodeServer(this.#config, this.#application.listener(), this.#unreadable);
    try {
      await once(server.listen({ host, port }), 'listening');
    } catch (error) {
      throw listenError(error as NodeJS.ErrnoException, this.#entry, this.#config);
    }
    if (signal.aborted) {
      server.close();
      throw signal.reason;
    }
    server.on('error', (error) => this.#log.error({ err: error }, 'a connection could not be taken'));
    this.#server = server;
    this.#log.info({ address: this.address() }, 'listening');
    if (this.#authentication.open)
      audit(this.#log, 'open_start', { address: this.address() }, 'the server asks nobody for a credential');
  }

  address(): string | undefined {
    const address = this.#server?.address();
    if (typeof address !== 'object' || address === null) return undefined;
    return `http://${reachable(this.#config.host)}:${address.port}`;
  }

  /** @throws Error where replies had to be cut. */
  stop(signal: AbortSignal): Promise<void> {
    this.#stopped ??= this.#stop(signal);
    return this.#stopped;
  }

  async #stop(signal: AbortSignal): Promise<void> {
    const server = this.#server;
    if (!server) return;
    const exchanges = this.#exchanges;
    exchanges.drain(() => server.closeIdleConnections());
    server.closeIdleConnections();
    await exchanges.idle(this.#drain, signal);
    const late = exchanges.size;
    if (late > 0) {
      exchanges.abandon(new TurnError('stopped', 'The server stopped before the answer was complete.'));
      await exchanges.idle(LAST_WORDS, signal);
      exchanges.cut('draining');
    }
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    this.#server = undefined;
    this.#log.info({ hang_ups: exchanges.hangUps, unlogged: exchanges.unlogged, cut: late }, 'stopped');
    if (late > 0) {
      const replies = late === 1 ? '1 reply was' : `${late} replies were`;
      throw new Error(`${replies} still running after ${this.#config.drain} (\`drain\` of ${this.#entry}) and had to be cut`);
    }
  }

  /** A server that was meant to ask for credentials must not stand open because of a plugin that asks for none. */
  #checkOpen(): void {
    const entries = this.#host.entries().filter(({ entry }) => entry.startsWith('auth.'));
    if (entries.length > 0) {
      const names = entries.map(({ entry }) => entry).join(', ');
      throw new Error(
        `${names}: nothing under \`auth\` can tell who calls, so the server would be open; use an auth plugin there, such as bearer`,
      );
    }
    this.#log.warn('the server is open: whoever reaches it may use every agent and model; a provider under `auth` changes that');
  }
}

/** An address under which this machine reaches what listens on `host`. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
