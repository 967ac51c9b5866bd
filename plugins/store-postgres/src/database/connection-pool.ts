import type { Clock } from '@plugboard/kernel';
import pg from 'pg';
import { ConnectionLost, connectionError } from '../errors/postgres-error.js';

/** Runs one statement. Values reach PostgreSQL only as parameters. */
export type Query = <R>(text: string, values?: readonly unknown[]) => Promise<readonly R[]>;

export interface ConnectionOptions {
  readonly url: string;
  /** Milliseconds that a statement may take, and that connecting may take. */
  readonly timeout: number;
  readonly clock: Clock;
}

/** Milliseconds of silence after which the system probes a connection. */
const KEEP_ALIVE = 10_000;
/** Milliseconds after which an idle connection is closed: a proxy may have dropped it silently. */
const MAX_IDLE = 60_000;

/** `bigint` as a number: ids, sizes and times are far below 2^53. */
const BIGINT = 20;
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === BIGINT ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

interface Idle {
  readonly client: pg.Client;
  readonly since: number;
}

/**
 * A few connections. None is kept between two uses, so a pool of two serves any number of turns.
 *
 * A connection that fails, or whose statement ran out of time, is destroyed. The idle ones, which a
 * proxy may have dropped with it, are closed then.
 */
export class ConnectionPool {
  readonly #options: ConnectionOptions;
  readonly #size: number;
  readonly #idle: Idle[] = [];
  readonly #waiting: (() => void)[] = [];
  #used = 0;
  #isClosed = false;

  constructor(options: ConnectionOptions, size: number) {
    this.#options = options;
    this.#size = size;
  }

  /** Runs work on a connection. @throws ConnectionLost, or what the work throws. */
  async use<T>(work: (query: Query) => Promise<T>): Promise<T> {
    await this.#permit();
    try {
      return await this.#withClient(work);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#used--;
    }
  }

  /** Closes the idle connections, and the others after their use. */
  close(): void {
    this.#isClosed = true;
    this.#closeIdle();
  }

  /** In order of arrival: a use that ends passes its permit on. */
  async #permit(): Promise<void> {
    if (this.#used < this.#size) this.#used++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #withClient<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const client = this.#takeIdle() ?? (await this.#connect());
    let isLost = false;
    const query: Query = async (text, values) => {
      try {
        const result = await client.query({ text, ...(values && { values: [...values] }) });
        return result.rows;
      } catch (error) {
        const thrown = connectionError(error);
        isLost ||= thrown instanceof ConnectionLost;
        throw thrown;
      }
    };
    try {
      return await work(query);
    } finally {
      if (isLost) this.#closeIdle();
      if (isLost || this.#isClosed) discard(client);
      else this.#idle.push({ client, since: this.#options.clock.monotonic() });
    }
  }

  #takeIdle(): pg.Client | undefined {
    const now = this.#options.clock.monotonic();
    for (let last = this.#idle.pop(); last; last = this.#idle.pop()) {
      if (now - last.since < MAX_IDLE) return last.client;
      discard(last.client);
    }
    return undefined;
  }

  async #connect(): Promise<pg.Client> {
    const client = newClient(this.#options);
    client.on('error', () => this.#forget(client));
    client.on('end', () => this.#forget(client));
    try {
      await client.connect();
      return client;
    } catch (error) {
      discard(client);
      throw connectionError(error);
    }
  }

  /** Removes an idle connection that has ended. */
  #forget(client: pg.Client): void {
    const index = this.#idle.findIndex((idle) => idle.client === client);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  #closeIdle(): void {
    for (const { client } of this.#idle.splice(0)) discard(client);
  }
}

/** Without a listener of `error`, a connection that ends would end the process. */
export function newClient({ url, timeout }: Omit<ConnectionOptions, 'clock'>): pg.Client {
  return new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeout,
    query_timeout: timeout,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE,
    application_name: 'plugboard',
    types,
  });
}

/** Ends a connection. The driver destroys the socket if a statement still runs. */
export function discard(client: pg.Client): void {
  client.end().catch(() => {}); // it has failed already
}
