import type { Clock, Logger } from '@plugboard/kernel';
import { type BadRow, type StoreLimits, Sweeper } from '@plugboard/store-kit';
import type { Database, DatabaseOptions } from './database/database.js';
import { Hints } from './database/hints.js';
import { Listener } from './database/listener.js';
import { Replica } from './database/replica.js';
import { explainError, type Server } from './errors/postgres-error.js';
import { CachedHistories } from './shared/cached-histories.js';
import { Holds } from './shared/holds.js';
import { LiveOffers } from './shared/live-offers.js';
import { LiveReaders } from './shared/live-readers.js';
import { TurnLine } from './shared/turn-line.js';
import { StoreTables } from './tables/store-tables.js';

export interface PostgresStoreOptions extends Omit<DatabaseOptions, 'clock'>, StoreLimits {
  /** The database past a pooler, for LISTEN. By default `url`. */
  readonly listenUrl?: string | undefined;
  /** Milliseconds for which a server that is silent keeps its sessions. */
  readonly lease: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds that a renewal may take in the client: it is noticed in time that it fails. */
const RENEWAL_TIMEOUT = 2_500;
/** Bytes of the name of a channel. */
const MAX_CHANNEL = 63;

/** What exists between `start` and `stop` of a store. */
export class OpenStore {
  readonly database: Database;
  readonly tables: StoreTables;
  readonly replica: Replica;
  readonly cached: CachedHistories;
  readonly line: TurnLine;
  readonly holds: Holds;
  readonly offers: LiveOffers;
  readonly readers: LiveReaders;
  readonly #leases: Database;
  readonly #listener: Listener;
  readonly #hints: Hints;
  readonly #channel: string;
  readonly #options: PostgresStoreOptions;
  readonly #server: Server;
  #sweeper: Sweeper | undefined;

  constructor(options: PostgresStoreOptions, server: Server, newDatabase: (options: DatabaseOptions) => Database) {
    const { lease, ttl, quotas, caps, clock, log, schema, url, listenUrl = url } = options;
    this.#options = options;
    this.#server = server;
    this.#channel = `plugboard_${schema}`.slice(0, MAX_CHANNEL);
    this.#hints = new Hints(clock);
    this.database = newDatabase(options);
    const timeout = Math.min(RENEWAL_TIMEOUT, lease / 3);
    this.#leases = newDatabase({ timeout, ...options, poolSize: 1, patience: 0 });
    this.tables = new StoreTables(this.database, quotas, ttl, caps);
    this.replica = new Replica({
      database: this.#leases,
      server,
      lease,
      clock,
      log,
      onRenewed: () => this.#check(),
      onEnded: () => this.#endAll(),
    });
    this.cached = new CachedHistories(this.database);
    this.line = new TurnLine({
      tables: this.tables,
      replica: this.replica,
      hints: this.#hints,
      cached: this.cached,
      notify: (payload) => void this.#notify(payload).catch(() => {}), // a hint
      onBadRow: (row) => this.logBadRow(row, 'an interrupted turn cannot be read and is skipped'),
    });
    this.holds = new Holds(this.tables.holds, this.replica, this.#hints);
    this.offers = new LiveOffers(this.tables.live, this.replica, clock);
    this.readers = new LiveReaders(this.tables.live, this.replica, clock);
    const notify = (payload: string) => this.#notify(payload);
    const onHint = (payload: string) => this.#onHint(payload);
    this.#listener = new Listener({ url: listenUrl, channel: this.#channel, clock, log, notify, onHint });
  }

  /** @throws StoreError if the database cannot be used */
  async open(): Promise<void> {
    try {
      await this.replica.enter(this.database);
    } catch (error) {
      this.#closeConnections();
      throw explainError(error, this.#server);
    }
    this.#listener.start();
    const { clock, log } = this.#options;
    this.#sweeper = new Sweeper(
      clock,
      () => this.tables.sweep(),
      (error) => log.warn({ err: explainError(error, this.#server) }, 'could not delete expired rows; will retry'),
    );
  }

  /** Gives the lease back: what this server held is free at once. */
  async close(): Promise<void> {
    this.#sweeper?.stop();
    this.#listener.stop();
    this.offers.close();
    try {
      await this.replica.leave();
    } catch (error) {
      const err = explainError(error, this.#server);
      this.#options.log.warn({ err }, 'could not give the lease back: the sessions of this server are free when it expires');
    }
    this.#endAll();
    this.#closeConnections();
  }

  logBadRow(row: BadRow, message: string): void {
    this.#options.log.error({ err: explainError(row, this.#server) }, message);
  }

  #closeConnections(): void {
    this.database.close();
    this.#leases.close();
  }

  #notify(payload: string): Promise<unknown> {
    return this.database.run('SELECT pg_notify($1, $2)', [this.#channel, payload]);
  }

  #onHint(payload: string): void {
    const [kind, key = ''] = payload.split(' ');
    if (kind === 'line') this.#hints.wake(key);
    if (kind === 'end' && Number(key) === this.replica.id) this.#check();
  }

  #check(): void {
    Promise.all([this.line.check(), this.holds.check()]).catch(() => {}); // repeated after each renewal
  }

  #endAll(): void {
    this.line.endAll();
    this.holds.endAll();
  }
}
