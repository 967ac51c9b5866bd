import { hostname } from 'node:os';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { explainError, type Server } from '../errors/postgres-error.js';
import { inUse, StoreError } from '../errors/store-error.js';
import type { Query } from './connection-pool.js';
import { Database } from './database.js';
import { assertSupported, migrate } from './schema.js';

/** Milliseconds between two renewals, at most. */
const MAX_INTERVAL = 4_000;
/** Milliseconds until the next attempt after one that failed, or while another server lives. */
const RETRY = 1_000;
/** Milliseconds by which the clock of this server may differ from the database's. */
const MAX_SKEW = 60_000;

interface ReplicaOptions {
  /** Has a connection for this alone: a renewal waits for no turn. */
  readonly database: Database;
  readonly server: Server;
  /** Milliseconds. */
  readonly lease: number;
  readonly clock: Clock;
  readonly log: Logger;
}

interface ReplicaRow {
  readonly id: number;
  readonly name: string;
  readonly expires: string;
  readonly seconds: number;
}

/**
 * This server's row in the table of servers: while it has not expired, the schema is this server's.
 *
 * 1. `enter` migrates the schema and inserts the row. Another server's row is waited for: if it is
 *    renewed, that server lives, and the start fails; if it expires, that server was killed.
 * 2. The row is renewed four times per lease. `check` says whether that works.
 * 3. A row that has expired never counts again. The server then enters with a new one; turns that
 *    began with the old one cannot commit.
 * 4. `leave` deletes the row.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly #name = `${hostname()}, process ${process.pid}`;
  #id = 0;
  #timer: Timer | undefined;
  #renewal: Promise<void> = Promise.resolve();
  #isOpen = false;
  #failure: Error | undefined;
  #warnedOfClock = false;

  constructor(options: ReplicaOptions) {
    this.#options = options;
  }

  /** Of the row: changes when the server has to enter again. */
  get id(): number {
    return this.#id;
  }

  /** Why the store does not work, if it does not. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Marks the store as failed until a renewal succeeds. */
  fail(error: Error): void {
    if (!this.#failure) this.#options.log.error({ err: error }, 'the session store does not work');
    this.#failure = error;
  }

  /**
   * @param database more patient than that of the renewals.
   * @throws StoreError if another server uses the schema, or it cannot be used.
   */
  async enter(database: Database, signal?: AbortSignal): Promise<void> {
    const { clock, lease, log } = this.#options;
    const end = clock.monotonic() + lease + 2 * RETRY;
    let seen: ReplicaRow | undefined;
    for (;;) {
      const other = await this.#tryToEnter(database);
      if (!other) break;
      const lives = seen !== undefined && (other.id !== seen.id || other.expires !== seen.expires);
      if (lives || clock.monotonic() >= end) throw inUse(this.#options.server.schema, other.name, other.seconds);
      if (!seen)
        log.info({ server: other.name }, 'another server has used the schema; waiting until it renews its lease or loses it');
      seen ??= other;
      await new Promise<void>((resolve) => clock.after(RETRY / 4, resolve));
      signal?.throwIfAborted();
    }
    this.#isOpen = true;
    this.#schedule(this.#interval);
  }

  async leave(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#timer?.cancel();
    await this.#renewal;
    await this.#options.database.run('DELETE FROM plugboard.replica WHERE id = $1', [this.#id]);
  }

  get #interval(): number {
    return Math.min(this.#options.lease / 4, MAX_INTERVAL);
  }

  /** @returns the other server that has the schema. */
  #tryToEnter(database: Database): Promise<ReplicaRow | undefined> {
    const { server, lease } = this.#options;
    const enter = async (query: Query) => {
      await assertSupported(query);
      await migrate(query, server.schema);
      await query('DELETE FROM plugboard.replica WHERE expires_at <= clock_timestamp()');
      const [other] = await query<ReplicaRow>(SQL.other);
      if (other) return other;
      const [own] = await query<{ readonly id: number }>(SQL.insert, [this.#name, lease]);
      this.#id = own?.id ?? 0;
      return undefined;
    };
    return database.transaction(enter, async (query) => (await query(SQL.exists, [this.#id])).length > 0);
  }

  #schedule(ms: number): void {
    if (!this.#isOpen) return;
    this.#timer = this.#options.clock.after(ms, () => {
      this.#renewal = this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { database, server, lease, log } = this.#options;
    try {
      const [row] = await database.run<{ readonly now: number }>(SQL.renew, [this.#id, lease]);
      if (row) this.#compareClocks(row.now);
      else await this.#enterAgain();
      if (this.#failure) log.info('the session store works again');
      this.#failure = undefined;
      this.#schedule(this.#interval);
    } catch (error) {
      const explained = explainError(error, server);
      this.fail(explained instanceof Error ? explained : new StoreError('postgres', String(explained)));
      this.#schedule(RETRY);
    }
  }

  async #enterAgain(): Promise<void> {
    const { server, log } = this.#options;
    const other = await this.#tryToEnter(this.#options.database);
    if (other) throw inUse(server.schema, other.name, other.seconds);
    log.warn('the lease of this server had expired; turns that ran then cannot be stored');
  }

  #compareClocks(now: number): void {
    const { clock, log } = this.#options;
    const skew = Math.round(clock.now() - now);
    const differs = Math.abs(skew) > MAX_SKEW;
    if (differs && !this.#warnedOfClock) {
      log.warn({ ms: skew }, "the clock of this server differs from the database's, which counts here; check NTP");
    }
    this.#warnedOfClock = differs;
  }
}

const SQL = {
  other: `SELECT id, name, expires_at::text AS expires,
      ceil(extract(epoch FROM expires_at - clock_timestamp()))::int AS seconds
    FROM plugboard.replica ORDER BY id LIMIT 1`,
  insert: `INSERT INTO plugboard.replica (name, expires_at)
    VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond') RETURNING id`,
  exists: 'SELECT FROM plugboard.replica WHERE id = $1',
  renew: `UPDATE plugboard.replica SET expires_at = clock_timestamp() + $2 * interval '1 millisecond'
    WHERE id = $1 AND expires_at > clock_timestamp() RETURNING ${Database.NOW} AS now`,
} as const;
