import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock, Logger } from '@plugboard/kernel';
import { isLoopback, type MetricsConfig } from './config.js';
import { Page } from './page.js';

/** Open connections. A Prometheus server needs one. */
const MAX_CONNECTIONS = 20;
/** Milliseconds that a scrape may take, with a client that reads slowly. */
const SCRAPE_LIMIT = 10_000;
/** Milliseconds for the head of a request. */
const HEAD_LIMIT = 5_000;
/** Milliseconds that an idle connection is kept: longer than the usual minute between scrapes. */
const KEEP_ALIVE = 75_000;

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Serves the page, and nothing else, on a port of its own. */
export class MetricsServer {
  readonly #config: MetricsConfig;
  readonly #entry: string;
  readonly #page: Page;
  readonly #clock: Clock;
  readonly #log: Logger;
  #server: Server | undefined;

  constructor(config: MetricsConfig, entry: string, page: Page, clock: Clock, log: Logger) {
    this.#config = config;
    this.#entry = entry;
    this.#page = page;
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws Error if the port is taken. */
  async start(signal: AbortSignal): Promise<void> {
    const { host, port, path } = this.#config;
    const server = createServer({
      maxHeaderSize: 8 * 1024,
      headersTimeout: HEAD_LIMIT,
      requestTimeout: SCRAPE_LIMIT,
      keepAliveTimeout: KEEP_ALIVE,
      connectionsCheckingInterval: 1_000,
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.on('request', (request, response) => this.#answer(request, response));
    try {
      await once(server.listen({ host, port }), 'listening');
    } catch (error) {
      throw this.#listenError(error as NodeJS.ErrnoException);
    }
    if (signal.aborted) {
      server.close();
      throw signal.reason;
    }
    server.on('error', (error) => this.#log.error({ err: error }, 'the metrics server failed to accept a connection'));
    this.#server = server;
    const { port: bound } = server.address() as AddressInfo;
    this.#log.info({ address: `http://${host.includes(':') ? `[${host}]` : host}:${bound}${path}` }, 'listening');
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const timer = this.#clock.after(SCRAPE_LIMIT, () => request.socket.destroy());
    response.once('close', () => timer.cancel());
    const refusal = this.#refusalOf(request);
    if (refusal) {
      refuse(response, refusal);
      return;
    }
    this.#page.read().then(
      (text) => {
        response.writeHead(200, { 'content-type': Page.contentType, 'content-length': text.length }).end(text);
      },
      (error) => {
        this.#log.error({ err: error }, 'the metrics cannot be written');
        refuse(response, { status: 500, message: 'the metrics cannot be written; the log has the reason' });
      },
    );
  }

  #refusalOf({ method, url = '', headers }: IncomingMessage): Refusal | undefined {
    const { host, path, token } = this.#config;
    if (token !== undefined) {
      const [, given] = /^Bearer ([!-~]{1,512})$/i.exec(headers.authorization ?? '') ?? [];
      if (given === undefined || !isEqual(given, token)) {
        const message = `set the token of ${this.#entry} as the credentials of the scrape: Authorization: Bearer …`;
        return { status: 401, message, headers: { 'www-authenticate': 'Bearer' } };
      }
    } else if (isLoopback(host) && !isLoopback(nameIn(headers.host))) {
      // A page in a browser of this machine can reach the port under a name of its own.
      return { status: 403, message: 'the Host header must name this machine, such as localhost or 127.0.0.1' };
    }
    if (url.split('?', 1)[0] !== path) return { status: 404, message: `the metrics are at ${path}` };
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, message: 'use GET', headers: { allow: 'GET, HEAD' } };
    return undefined;
  }

  #listenError(cause: NodeJS.ErrnoException): Error {
    const { host, port } = this.#config;
    const reason =
      cause.code === 'EADDRINUSE'
        ? `it is in use by another program: stop that program, or set another \`port\` for ${this.#entry} (0 picks a free one)`
        : `${cause.message}; set another \`host\` or \`port\` for ${this.#entry}`;
    return new Error(`cannot listen on port ${port} of ${host}: ${reason}`, { cause });
  }
}

/** Refuses a request, and closes its connection: the body of one is not read. */
function refuse(response: ServerResponse, { status, message, headers }: Refusal): void {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close', ...headers })
    .end(`${message}\n`);
}

/** The name in a `Host` header, without the port and the brackets of an IPv6 address. */
function nameIn(header = ''): string {
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header.toLowerCase()) ?? [];
  return address ?? name;
}

/** Compares two secrets in a time that says nothing about them. */
function isEqual(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
