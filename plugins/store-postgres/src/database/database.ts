import type { Clock } from '@plugboard/kernel';
import { ConnectionLost, isTemporary } from '../errors/postgres-error.js';
import { unknownOutcome } from '../errors/store-error.js';
import { ConnectionPool, type Query } from './connection-pool.js';

export interface DatabaseOptions {
  readonly url: string;
  /** Of all tables. Statements name it `plugboard`. */
  readonly schema: string;
  readonly poolSize: number;
  readonly clock: Clock;
  /** Milliseconds that a statement may take in the client. */
  readonly timeout?: number;
  /** Milliseconds for which what fails for a moment is tried again. */
  readonly patience?: number;
}

const TIMEOUT = 10_000;
const PATIENCE = 10_000;
/** Milliseconds before the second retry. Each further one waits twice as long, up to a maximum. */
const FIRST_DELAY = 50;
const MAX_DELAY = 1_000;

/** One message, so one round trip. Limits end with the transaction, also behind a pooler. */
const BEGIN = `BEGIN; SET LOCAL statement_timeout = '9s'; SET LOCAL lock_timeout = '5s';
  SET LOCAL idle_in_transaction_session_timeout = '5s'`;

/** Statements and transactions, tried again where a connection fails. */
export class Database {
  /** For expressions of SQL: the database's clock, in milliseconds since the epoch. */
  static readonly NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

  readonly #pool: ConnectionPool;
  readonly #schema: string;
  readonly #clock: Clock;
  readonly #patience: number;
  /** Whether the last attempt of any statement failed: then others give up after one retry. */
  #isDown = false;

  constructor({ url, schema, poolSize, clock, timeout = TIMEOUT, patience = PATIENCE }: DatabaseOptions) {
    this.#pool = new ConnectionPool({ url, timeout, clock }, poolSize);
    this.#schema = schema;
    this.#clock = clock;
    this.#patience = patience;
  }

  /** How many connections were lost. */
  get losses(): number {
    return this.#pool.losses;
  }

  /**
   * Runs one statement in a transaction of its own. It may run twice: it must read, or lead to the
   * same when repeated.
   */
  run<R>(text: string, values?: readonly unknown[]): Promise<readonly R[]> {
    return this.#attempt((query) => query<R>(text, values));
  }

  /**
   * Runs a statement that stores something once, in a transaction of its own: one round trip.
   *
   * @param store sends it. Called again where a connection fails.
   * @param wasStored looks for what it stores. Called if its answer was lost.
   * @returns undefined: it was stored, and its answer was lost
   */
  async once<T>(store: (query: Query) => Promise<T>, wasStored: (query: Query) => Promise<boolean>): Promise<T | undefined> {
    let isUncertain = false;
    return this.#attempt(async (query) => {
      // Also after a further run: the first one may have arrived late.
      const isStored = async () => isUncertain && (await wasStored(query));
      if (await isStored()) return undefined;
      try {
        return await store(query);
      } catch (error) {
        if (error instanceof ConnectionLost) isUncertain = true;
        else if (await isStored()) return undefined;
        throw error;
      }
    });
  }

  /**
   * Runs work in a transaction. It may run more than once; the earlier runs are rolled back.
   *
   * @param work awaits nothing but its statements, so that no connection is idle in a transaction.
   * @param wasStored looks for what the work stores. Called if the answer to COMMIT was lost.
   * @throws StoreError `unknown_outcome` if that answer was lost and there is no `wasStored`.
   */
  async transaction<T>(work: (query: Query) => Promise<T>, wasStored?: (query: Query) => Promise<boolean>): Promise<T> {
    let uncertain: { readonly result: T } | undefined;
    return this.#attempt(async (query) => {
      // Also before a further run: the first COMMIT may have arrived late.
      if (uncertain && (await wasStored?.(query))) return uncertain.result;
      await query(BEGIN);
      let result: T;
      try {
        result = await work(query);
      } catch (error) {
        if (!(error instanceof ConnectionLost)) await query('ROLLBACK');
        if (uncertain && (await wasStored?.(query))) return uncertain.result;
        throw error;
      }
      try {
        await query('COMMIT');
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        if (!wasStored) throw unknownOutcome(error);
        uncertain = { result };
        throw error;
      }
      return result;
    });
  }

  close(): void {
    this.#pool.close();
  }

  async #attempt<T>(work: (query: Query) => Promise<T>): Promise<T> {
    const end = this.#clock.monotonic() + this.#patience;
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#pool.use((query) => work((text, values) => query(this.named(text), values)));
        this.#isDown = false;
        return result;
      } catch (error) {
        const isOver = attempt > 1 && (this.#isDown || this.#clock.monotonic() >= end);
        if (!isTemporary(error) || isOver) {
          if (error instanceof ConnectionLost) this.#isDown = true;
          throw error;
        }
        if (attempt > 1) await this.#delay(Math.min(FIRST_DELAY * 2 ** (attempt - 2), MAX_DELAY));
      }
    }
  }

  /** Statements are written in this plugin, so the name of the schema occurs nowhere else. */
  protected named(text: string): string {
    return text.replaceAll('plugboard.', `"${this.#schema}".`);
  }

  #delay(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }
}
