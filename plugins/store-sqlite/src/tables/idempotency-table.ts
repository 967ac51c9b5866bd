import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import type { IdempotencyKey, IdempotencyRecord } from '@plugboard/kernel/contracts';
import { prepareAll, type Statements, timestamp } from './statements.js';

const DAY = 24 * 60 * 60_000;
/** Set by the contract of `IdempotencyStore`. */
const MAX_RECORDS = 100_000;
/** Deleted at once beyond the limit, so that rows are counted once per so many new records. */
const OVERFLOW_ROWS = 1_000;
/** Maximum number of rows that one sweep deletes. */
const SWEEP_ROWS = 100;

/** The table of idempotency records. Methods are synchronous; those that write run inside the caller's transaction. */
export class IdempotencyTable {
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;
  /** At least the number of rows: replaced and rolled back records are counted too. */
  #maxCount: number;

  constructor(database: DatabaseSync, clock: Clock) {
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
    this.#maxCount = this.#count();
  }

  get(key: IdempotencyKey): IdempotencyRecord | undefined {
    const row = this.#sql.get.get(...keyColumns(key), timestamp(this.#clock)) as
      | { fingerprint: string; answer: string | null }
      | undefined;
    return row && { key, fingerprint: row.fingerprint, result: row.answer === null ? 'began' : { text: row.answer } };
  }

  put({ key, fingerprint, result }: IdempotencyRecord): void {
    const answer = result === 'began' ? null : result.text;
    this.#sql.put.run(...keyColumns(key), fingerprint, answer, timestamp(this.#clock) + DAY);
    this.#maxCount++;
    if (this.#maxCount > MAX_RECORDS) this.#deleteOverflow();
  }

  /** Deletes some expired records. @returns whether there may be more. */
  sweep(): boolean {
    return this.#sql.sweep.run(timestamp(this.#clock), SWEEP_ROWS).changes === SWEEP_ROWS;
  }

  /** Deletes the oldest records of the project with the most, so that no project can push out another's (S-42). */
  #deleteOverflow(): void {
    const count = this.#count();
    const largest = this.#sql.largestProject.get()?.project ?? null;
    if (count > MAX_RECORDS) this.#sql.deleteOldest.run(largest, count - MAX_RECORDS + OVERFLOW_ROWS - 1);
    this.#maxCount = this.#count();
  }

  #count(): number {
    return Number(this.#sql.count.get()?.n);
  }
}

function keyColumns({ project, route, key }: IdempotencyKey): [string, string, string] {
  return [project, route, key];
}

const SQL = {
  get: 'SELECT fingerprint, answer FROM idempotency WHERE project = ? AND route = ? AND key = ? AND expires_at > ?',
  put: `INSERT INTO idempotency (project, route, key, fingerprint, answer, expires_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at`,
  count: 'SELECT count(*) AS n FROM idempotency',
  largestProject: 'SELECT project FROM idempotency GROUP BY project ORDER BY count(*) DESC LIMIT 1',
  deleteOldest: 'DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE project = ? ORDER BY id LIMIT ?)',
  sweep: 'DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE expires_at <= ? LIMIT ?)',
} as const;
