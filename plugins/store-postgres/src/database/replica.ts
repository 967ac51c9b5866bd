import { hostname } from 'node:os';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { explainError, type Server } from '../errors/postgres-error.js';
import { noLease, StoreError } from '../errors/store-error.js';
import type { Query } from './connection-pool.js';
import { Database } from './database.js';
import { assertSupported, migrate } from './schema.js';

/** Milliseconds between two renewals, at most: each also asks which turns are to end. */
const MAX_INTERVAL = 5_000;
/** Milliseconds until the next attempt after one that failed. */
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
  /** Called after each renewal. */
  readonly onRenewed: () => void;
  /** Called when what this server holds may be another's: nothing of it may go on. */
  readonly onEnded: () => void;
}

/**
 * This server's row in the table of servers: its lease.
 *
 * 1. `enter` migrates the schema and inserts the row. Of several servers one migrates at a time.
 * 2. The row is renewed every third of the lease or more often, by a connection of its own.
 * 3. Two thirds of the lease after the last renewal, by the monotonic clock, the server ends what
 *    it holds, before another one may take it.
 * 4. A row that expired never counts again. The server ends what it holds and enters anew.
 * 5. `leave` deletes the row: what the server held is free at once.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  readonly #name = `${hostname()}, process ${process.pid}`;
  #id = 0;
  /** Until then, by the monotonic clock, no other server takes what this one holds. */
  #safeUntil = Number.NEGATIVE_INFINITY;
  /** The database's clock less the monotonic one. */
  #offset = 0;
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #renewal: Promise<void> = Promise.resolve();
  /** Whether the turns of the row were ended. Then the row is renewed no more. */
  #hasEnded = false;
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

  /** Whether no other server takes what this one holds. */
  get isAlive(): boolean {
    return this.#options.clock.monotonic() < this.#safeUntil;
  }

  /** Why the store does not work, if it does not. */
  get failure(): Error | undefined {
    return this.#failure ?? (this.#isOpen && !this.isAlive ? noLease() : undefined);
  }

  /** The database's clock, in milliseconds since the epoch. */
  now(): number {
    return Math.floor(this.#options.clock.monotonic() + this.#offset);
  }

  /** Marks the store as failed until a renewal succeeds. */
  fail(error: Error): void {
    if (!this.#failure) this.#options.log.error({ err: error }, 'the session store does not work');
    this.#failure = error;
  }

  /**
   * @param database more patient than that of the renewals.
   * @throws StoreError if it cannot be used
   */
  async enter(database: Database): Promise<void> {
    await this.#insert(database);
    this.#isOpen = true;
    this.#schedule(this.#interval);
  }

  async leave(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#timer?.cancel();
    await this.#renewal;
    this.#expiry?.cancel();
    await this.#options.database.run('DELETE FROM plugboard.replica WHERE id = $1', [this.#id]);
  }

  get #interval(): number {
    return Math.min(this.#options.lease / 3, MAX_INTERVAL);
  }

  async #insert(database: Database): Promise<void> {
    const { server, lease, clock } = this.#options;
    const sentAt = clock.monotonic();
    let id = 0;
    const enter = async (query: Query) => {
      await assertSupported(query);
      await migrate(query, server.schema);
      await query('DELETE FROM plugboard.replica WHERE expires_at <= clock_timestamp() OR id = $1', [this.#id]);
      const [own] = await query<{ readonly id: number; readonly now: number }>(SQL.insert, [this.#name, lease]);
      id = own?.id ?? 0;
      return own?.now ?? 0;
    };
    const now = await database.transaction(enter, async (query) => (await query(SQL.exists, [id])).length > 0);
    this.#id = id;
    this.#renewed(sentAt, now);
  }

  /** @param sentAt before the statement that renewed. @param now the database's clock. */
  #renewed(sentAt: number, now: number): void {
    const { clock, lease } = this.#options;
    this.#hasEnded = false;
    this.#safeUntil = sentAt + (lease * 2) / 3;
    this.#offset = now - (sentAt + clock.monotonic()) / 2;
    this.#expiry?.cancel();
    this.#expiry = clock.after(this.#safeUntil - clock.monotonic(), () => this.#end());
    this.#compareClocks(now);
  }

  /** Ends the turns. Their rows are those of a dead server when this one's row is gone. */
  #end(): void {
    this.#hasEnded = true;
    this.#options.onEnded();
  }

  #schedule(ms: number): void {
    if (!this.#isOpen) return;
    this.#timer = this.#options.clock.after(ms, () => {
      this.#renewal = this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { database, server, lease, log, clock, onRenewed } = this.#options;
    const sentAt = clock.monotonic();
    try {
      const [row] = await database.run<{ readonly now: number }>(SQL.renew, [this.#id, lease]);
      if (row && !this.#hasEnded) this.#renewed(sentAt, row.now);
      else await this.#enterAgain();
      if (this.#failure) log.info('the session store works again');
      this.#failure = undefined;
      onRenewed();
      this.#schedule(this.#interval);
    } catch (error) {
      const explained = explainError(error, server);
      this.fail(explained instanceof Error ? explained : new StoreError('postgres', String(explained)));
      this.#schedule(Math.min(RETRY, this.#interval));
    }
  }

  async #enterAgain(): Promise<void> {
    const { log, database } = this.#options;
    this.#safeUntil = Number.NEGATIVE_INFINITY;
    this.#end();
    await this.#insert(database);
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
  insert: `INSERT INTO plugboard.replica (name, expires_at)
    VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond') RETURNING id, ${Database.NOW} AS now`,
  exists: 'SELECT FROM plugboard.replica WHERE id = $1',
  renew: `UPDATE plugboard.replica SET expires_at = clock_timestamp() + $2 * interval '1 millisecond'
    WHERE id = $1 AND expires_at > clock_timestamp() RETURNING ${Database.NOW} AS now`,
} as const;
