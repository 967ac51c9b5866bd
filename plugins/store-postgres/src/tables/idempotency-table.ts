import type { IdempotencyKey, IdempotencyRecord } from '@plugboard/kernel/contracts';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';
import { fromColumn, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

const DAY = 24 * 60 * 60_000;
/** Set by the contract of `IdempotencyStore`. */
const MAX_RECORDS = 100_000;
/** Share of the limit that is deleted at once beyond it, so that rows are rarely counted. */
const OVERFLOW = 0.01;

/** A record as columns. */
export interface RecordColumns {
  readonly project: string;
  readonly values: readonly (string | null)[];
  readonly bytes: number;
}

/** Makes the columns of a record. */
export function recordColumns({ key: { project, route, key }, fingerprint, result }: IdempotencyRecord): RecordColumns {
  const texts = [toColumn(route), toColumn(key), toColumn(fingerprint), result === 'began' ? null : toColumn(result.text)];
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);
  return { project, values: [toColumn(project), ...texts], bytes };
}

/** The table of idempotency records. */
export class IdempotencyTable {
  readonly #database: Database;
  readonly #maxRecords: number;
  /** At least the number of rows, as far as this server knows. Undefined: to be counted. */
  #count: number | undefined;

  constructor(database: Database, maxRecords = MAX_RECORDS) {
    this.#database = database;
    this.#maxRecords = maxRecords;
  }

  async get(key: IdempotencyKey, reserve?: (bytes: number) => void): Promise<IdempotencyRecord | undefined> {
    const values = [toColumn(key.project), toColumn(key.route), toColumn(key.key)];
    if (reserve) {
      const [size] = await this.#database.run<{ readonly bytes: number }>(SQL.size, values);
      reserve(size?.bytes ?? 0);
    }
    const [row] = await this.#database.run<{ readonly fingerprint: string; readonly answer: string | null }>(SQL.get, values);
    if (!row) return undefined;
    const { fingerprint, answer } = row;
    return { key, fingerprint: fromColumn(fingerprint), result: answer === null ? 'began' : { text: fromColumn(answer) } };
  }

  /** Stores a record, and deletes the oldest ones beyond the maximum. */
  async put({ values }: RecordColumns, query: Query = (text, given) => this.#database.run(text, given)): Promise<void> {
    const [row] = await query<{ readonly added: boolean }>(SQL.put, [...values, DAY, anySlot()]);
    this.#count ??= await this.#counted(query);
    if (row?.added) this.#count++;
    if (this.#count <= this.#maxRecords) return;
    this.#count = await this.#counted(query);
    if (this.#count <= this.#maxRecords) return;
    // The oldest of the project with the most: no project pushes out another's (S-42).
    const surplus = this.#count - Math.floor(this.#maxRecords * (1 - OVERFLOW)) - 1;
    await query(SQL.deleteOldest, [surplus, anySlot()]);
    this.#count = undefined;
  }

  /** Other servers add records too: they are counted again from time to time. */
  recount(): void {
    this.#count = undefined;
  }

  async #counted(query: Query): Promise<number> {
    const [row] = await query<{ readonly n: number }>('SELECT count(*) AS n FROM plugboard.idempotency');
    return row?.n ?? 0;
  }
}

/** The size of a record in bytes, as `recordColumns` computes it. */
export const RECORD_SIZE =
  '(octet_length(route) + octet_length(key) + octet_length(fingerprint) + coalesce(octet_length(answer), 0))::bigint';
const BY_KEY = 'project = $1 AND route = $2 AND key = $3';

const SQL = {
  size: `SELECT ${RECORD_SIZE} AS bytes FROM plugboard.idempotency WHERE ${BY_KEY}`,
  get: `SELECT fingerprint, answer FROM plugboard.idempotency WHERE ${BY_KEY} AND expires_at > ${Database.NOW}`,
  put: `WITH before AS (SELECT ${RECORD_SIZE} AS bytes FROM plugboard.idempotency WHERE ${BY_KEY}),
    stored AS (
      INSERT INTO plugboard.idempotency (project, route, key, fingerprint, answer, expires_at)
      VALUES ($1, $2, $3, $4, $5, ${Database.NOW} + $6::bigint)
      ON CONFLICT (project, route, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
      RETURNING ${RECORD_SIZE} AS bytes),
    counted AS (${addUsage('SELECT $1, $7::int, 0, bytes - coalesce((SELECT bytes FROM before), 0) FROM stored')})
    SELECT NOT EXISTS (SELECT FROM before) AS added`,
  deleteOldest: `WITH gone AS (
      DELETE FROM plugboard.idempotency WHERE id IN (
        SELECT id FROM plugboard.idempotency WHERE project =
          (SELECT project FROM plugboard.idempotency GROUP BY project ORDER BY count(*) DESC LIMIT 1)
        ORDER BY id LIMIT $1)
      RETURNING project, ${RECORD_SIZE} AS bytes)
    ${addUsage('SELECT project, $2::int, 0, -sum(bytes) FROM gone GROUP BY project')}`,
} as const;
