import { createRequire } from 'node:module';
import type { buildConnector, Client, Dispatcher } from 'undici';

const require = createRequire(import.meta.url);

/** The parts of undici in use. Its index also loads 88 more modules, 13 MiB. */
const undici = {
  get Client() {
    return require('undici/lib/dispatcher/client.js') as typeof Client;
  },
  get buildConnector() {
    return require('undici/lib/core/connect.js') as typeof buildConnector;
  },
};

/**
 * The sockets to one model server, each with one request at a time. A request takes the socket that
 * was used last, or opens another one. undici's own pool looks through all of its sockets with each
 * request, which is slow beside many open streams.
 */
export class ClientPool {
  readonly #origin: string;
  readonly #connectTimeout: number;
  /** Opens sockets, with the TLS sessions of the earlier ones. */
  #connect: buildConnector.connector | undefined;
  /** An undici client has one socket, and opens it again with the next request. */
  readonly #clients = new Set<Client>();
  /** Clients without a request, in the order of their last use. */
  #free: Client[] = [];
  #isDestroyed = false;

  /** @param connectTimeout milliseconds to open a socket, TLS included. */
  constructor(origin: string, connectTimeout: number) {
    this.#origin = origin;
    this.#connectTimeout = connectTimeout;
  }

  /** Sends a request. What happens to it is reported to the handler. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const client = this.#free.pop() ?? this.#open();
    client.dispatch(request, handler);
    if (client.stats.size === 0) this.#release(client); // an invalid request, which undici reports at once
  }

  /** Closes all sockets. Running requests fail, and so do later ones. */
  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    this.#free = [];
    await Promise.all([...this.#clients].map((client) => client.destroy()));
  }

  #open(): Client {
    this.#connect ??= undici.buildConnector({ timeout: this.#connectTimeout, allowH2: false });
    const client = new undici.Client(this.#origin, {
      connect: this.#connect,
      allowH2: false,
      // `idleTimeout` of the connection applies from the request to the end of the answer.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    if (this.#isDestroyed) void client.destroy();
    this.#clients.add(client);
    client.on('drain', () => this.#release(client));
    client.on('connectionError', () => this.#close(client));
    client.on('disconnect', () => {
      if (this.#free.includes(client)) this.#close(client);
    });
    return client;
  }

  #release(client: Client): void {
    if (!client.closed && !this.#free.includes(client)) this.#free.push(client);
  }

  #close(client: Client): void {
    this.#free = this.#free.filter((other) => other !== client);
    void client.close().then(() => this.#clients.delete(client));
  }
}
