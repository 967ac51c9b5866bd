import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { ExpiryClock, IdempotencyKey, IdempotencyRecord } from '@plugboard/kernel/contracts';
import { MAX_RECORDS, RECORD_TTL, surplusOf } from '@plugboard/store-kit';
import { RECORD_SIZE, type Usage } from './project-usage.js';
import { prepareAll, type Statements } from './statements.js';

/** Maximum number of rows that one sweep deletes. */
const SWEEP_ROWS = 100;

/** The table of idempotency records. What writes runs inside the caller's transaction. */
export class IdempotencyTable {
  readonly #clock: ExpiryClock;
  readonly #maxRecords: number;
  readonly #sql: Statements<keyof typeof SQL>;
  /** At least the number of rows: replaced and rolled back records are counted too. */
  #maxCount: number;

  constructor(database: DatabaseSync, clock: ExpiryClock, maxRecords = MAX_RECORDS) {
    this.#clock = clock;
    this.#maxRecords = maxRecords;
    this.#sql = prepareAll(database, SQL);
    this.#maxCount = this.#count();
  }

  get(key: IdempotencyKey, reserve?: (bytes: number) => void): IdempotencyRecord | undefined {
    reserve?.(this.#sizeOf(key));
    const row = this.#sql.get.get(...keyColumns(key), this.#clock.now()) as
      | { fingerprint: string; answer: string | null }
      | undefined;
    return row && { key, fingerprint: row.fingerprint, result: row.answer === null ? 'began' : { text: row.answer } };
  }

  /** @returns what the projects store more or less than before. */
  put(record: IdempotencyRecord): readonly Usage[] {
    const { key, fingerprint, result } = record;
    const answer = result === 'began' ? null : result.text;
    const before = this.#sizeOf(key);
    this.#sql.put.run(...keyColumns(key), fingerprint, answer, this.#clock.stamp() + RECORD_TTL);
    const added = { project: key.project, bytes: recordSize(record) - before };
    this.#maxCount++;
    return this.#maxCount > this.#maxRecords ? [added, ...this.#deleteOverflow()] : [added];
  }

  #sizeOf(key: IdempotencyKey): number {
    return Number(this.#sql.size.get(...keyColumns(key))?.bytes ?? 0);
  }

  /** Deletes some expired records. */
  sweep(): { readonly hasMore: boolean; readonly freed: readonly Usage[] } {
    const deleted = this.#sql.sweep.all(this.#clock.now(), SWEEP_ROWS);
    return { hasMore: deleted.length === SWEEP_ROWS, freed: deleted.map(freed) };
  }

  /** Deletes the oldest of the project with the most: no project pushes out another's (S-42). */
  #deleteOverflow(): readonly Usage[] {
    const count = this.#count();
    const largest = this.#sql.largestProject.get()?.project ?? null;
    const surplus = surplusOf(count, this.#maxRecords);
    const deleted = count > this.#maxRecords ? this.#sql.deleteOldest.all(largest, surplus) : [];
    this.#maxCount = this.#count();
    return deleted.map(freed);
  }

  #count(): number {
    return Number(this.#sql.count.get()?.n);
  }
}

/** The size of a record in bytes, as `RECORD_SIZE` computes it. */
export function recordSize({ key: { route, key }, fingerprint, result }: IdempotencyRecord): number {
  const texts = [route, key, fingerprint, ...(result === 'began' ? [] : [result.text])];
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0);
}

function freed({ project, bytes }: Readonly<Record<string, SQLOutputValue>>): Usage {
  return { project: String(project), bytes: -Number(bytes) };
}

function keyColumns({ project, route, key }: IdempotencyKey): [string, string, string] {
  return [project, route, key];
}

const SQL = {
  size: `SELECT ${RECORD_SIZE} AS bytes FROM idempotency WHERE project = ? AND route = ? AND key = ?`,
  get: 'SELECT fingerprint, answer FROM idempotency WHERE project = ? AND route = ? AND key = ? AND expires_at > ?',
  put: `INSERT INTO idempotency (project, route, key, fingerprint, answer, expires_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at`,
  count: 'SELECT count(*) AS n FROM idempotency',
  largestProject: 'SELECT project FROM idempotency GROUP BY project ORDER BY count(*) DESC LIMIT 1',
  deleteOldest: `DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE project = ? ORDER BY id LIMIT ?)
    RETURNING project, ${RECORD_SIZE} AS bytes`,
  sweep: `DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE expires_at <= ? LIMIT ?)
    RETURNING project, ${RECORD_SIZE} AS bytes`,
} as const;
