import type { DatabaseSync } from 'node:sqlite';
import type { Clock, IdempotencyKey, IdempotencyRecord } from '@plugboard/kernel';
import { prepareAll, type Statements, timestamp } from './statements.js';

const DAY = 24 * 60 * 60_000;
/** Set by the contract of `IdempotencyStore`. */
const MAX_RECORDS = 100_000;
/** Maximum number of rows that one sweep deletes. */
const SWEEP_ROWS = 100;

/** The table of idempotency records. Methods are synchronous; those that write run inside the caller's transaction. */
export class IdempotencyTable {
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync, clock: Clock) {
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
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
    this.#sql.deleteOldest.run(MAX_RECORDS);
  }

  /** Deletes some expired records. @returns whether there may be more. */
  sweep(): boolean {
    return this.#sql.sweep.run(timestamp(this.#clock), SWEEP_ROWS).changes === SWEEP_ROWS;
  }
}

function keyColumns({ project, route, key }: IdempotencyKey): [string, string, string] {
  return [project, route, key];
}

const SQL = {
  get: 'SELECT fingerprint, answer FROM idempotency WHERE project = ? AND route = ? AND key = ? AND expires_at > ?',
  put: `INSERT INTO idempotency (project, route, key, fingerprint, answer, expires_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at`,
  // Ids grow by one with each new key, so nothing needs to be counted.
  deleteOldest: 'DELETE FROM idempotency WHERE id <= (SELECT max(id) FROM idempotency) - ?',
  sweep: 'DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE expires_at <= ? LIMIT ?)',
} as const;
