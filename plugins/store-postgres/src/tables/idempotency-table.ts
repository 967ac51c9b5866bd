import { type IdempotencyKey, type IdempotencyRecord, type IdempotencyStore, LeaseEnded } from '@plugboard/kernel/contracts';
import { MAX_RECORDS, RECORD_TTL, surplusOf } from '@plugboard/store-kit';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';
import { fromColumn, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

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

/** What has a key. */
interface FoundRow {
  readonly fingerprint: string;
  readonly bytes: number;
  readonly status: 'answered' | 'running' | 'began' | 'free';
}

/** The table of idempotency records, and of the claims of servers. */
export class IdempotencyTable {
  readonly #database: Database;
  readonly #maxRecords: number;
  /** At least the number of rows, as far as this server knows. Undefined: to be counted. */
  #count: number | undefined;

  constructor(database: Database, maxRecords = MAX_RECORDS) {
    this.#database = database;
    this.#maxRecords = maxRecords;
  }

  /**
   * Claims a key for a server, whose own claim of it counts no more: it was not released.
   * @returns what else has the key.
   */
  async claim(
    replica: number,
    ...[key, fingerprint, reserve]: Parameters<IdempotencyStore['claim']>
  ): ReturnType<IdempotencyStore['claim']> {
    const values = [toColumn(key.project), toColumn(key.route), toColumn(key.key)];
    for (;;) {
      const [claimed] = await this.#database.run<{ readonly added: boolean }>(SQL.claim, [
        ...values,
        toColumn(fingerprint),
        replica,
        RECORD_TTL,
        anySlot(),
      ]);
      if (claimed) {
        if (claimed.added && this.#count !== undefined) this.#count++;
        return undefined;
      }
      const [found] = await this.#database.run<FoundRow>(SQL.find, [...values, replica]);
      if (!found || found.status === 'free') continue; // it has ended meanwhile
      const { status } = found;
      const other = { key, fingerprint: fromColumn(found.fingerprint) };
      if (status !== 'answered') return { ...other, result: status };
      reserve?.(found.bytes);
      const [row] = await this.#database.run<{ readonly answer: string }>(SQL.answer, values);
      if (row) return { ...other, result: { text: fromColumn(row.answer) } };
    }
  }

  /** Ends a server's claim of a key: the key is free, unless tools had begun. */
  async release({ project, route, key }: IdempotencyKey, replica: number): Promise<void> {
    await this.#database.run(SQL.release, [toColumn(project), toColumn(route), toColumn(key), replica]);
  }

  /**
   * Stores a record, and deletes the oldest ones beyond the maximum.
   * @throws LeaseEnded if another server may have claimed the key.
   */
  async put(
    { values }: RecordColumns,
    replica: number,
    query: Query = (text, given) => this.#database.run(text, given),
  ): Promise<void> {
    const [row] = await query<{ readonly added: boolean }>(SQL.put, [...values, RECORD_TTL, anySlot(), replica]);
    if (!row) throw new LeaseEnded('expired');
    this.#count ??= await this.#counted(query);
    if (row.added) this.#count++;
    if (this.#count <= this.#maxRecords) return;
    this.#count = await this.#counted(query);
    if (this.#count <= this.#maxRecords) return;
    // The oldest of the project with the most: no project pushes out another's (S-42).
    await query(SQL.deleteOldest, [surplusOf(this.#count, this.#maxRecords), anySlot()]);
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

/** Whether a server has claimed a row and no tool has begun. */
const IS_CLAIM = 'idempotency.answer IS NULL AND NOT idempotency.began';
/** The size of a record in bytes, as `recordColumns` computes it. A claim is not counted. */
export const RECORD_SIZE = `(CASE WHEN ${IS_CLAIM} THEN 0
  ELSE octet_length(route) + octet_length(key) + octet_length(fingerprint) + coalesce(octet_length(answer), 0) END)::bigint`;
const BY_KEY = 'project = $1 AND route = $2 AND key = $3';

/** Whether the server that has claimed a row is alive. */
const IS_ALIVE = `EXISTS (SELECT FROM plugboard.replica WHERE replica.id = idempotency.replica AND
  replica.expires_at > clock_timestamp())`;
const SIZE_BEFORE = `before AS (SELECT ${RECORD_SIZE} AS bytes FROM plugboard.idempotency WHERE ${BY_KEY})`;

const SQL = {
  claim: `WITH ${SIZE_BEFORE},
    stored AS (
      INSERT INTO plugboard.idempotency (project, route, key, fingerprint, began, replica, expires_at)
      VALUES ($1, $2, $3, $4, false, $5, ${Database.NOW} + $6::bigint)
      ON CONFLICT (project, route, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = NULL, began = false, replica = excluded.replica,
          expires_at = excluded.expires_at
        WHERE idempotency.expires_at <= ${Database.NOW} OR ${IS_CLAIM} AND (idempotency.replica = excluded.replica OR NOT ${IS_ALIVE})
      RETURNING key),
    counted AS (${addUsage('SELECT $1, $7::int, 0, -bytes FROM stored, before WHERE bytes > 0')})
    SELECT NOT EXISTS (SELECT FROM before) AS added FROM stored`,
  find: `SELECT fingerprint, ${RECORD_SIZE} AS bytes, CASE WHEN answer IS NOT NULL THEN 'answered'
      WHEN replica <> $4 AND ${IS_ALIVE} THEN 'running' WHEN began THEN 'began' ELSE 'free' END AS status
    FROM plugboard.idempotency WHERE ${BY_KEY} AND expires_at > ${Database.NOW}`,
  answer: `SELECT answer FROM plugboard.idempotency WHERE ${BY_KEY} AND answer IS NOT NULL`,
  release: `WITH kept AS (UPDATE plugboard.idempotency SET replica = NULL WHERE ${BY_KEY} AND replica = $4 AND answer IS NULL AND began)
    DELETE FROM plugboard.idempotency WHERE ${BY_KEY} AND replica = $4 AND ${IS_CLAIM}`,
  put: `WITH ${SIZE_BEFORE},
    stored AS (
      INSERT INTO plugboard.idempotency (project, route, key, fingerprint, answer, began, replica, expires_at)
      VALUES ($1, $2, $3, $4, $5, true, CASE WHEN $5::text IS NULL THEN $8::bigint END, ${Database.NOW} + $6::bigint)
      ON CONFLICT (project, route, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, answer = excluded.answer, began = true, replica = excluded.replica,
          expires_at = excluded.expires_at
        WHERE idempotency.replica = $8 OR idempotency.answer = excluded.answer OR idempotency.expires_at <= ${Database.NOW}
      RETURNING ${RECORD_SIZE} AS bytes),
    counted AS (${addUsage('SELECT $1, $7::int, 0, bytes - coalesce((SELECT bytes FROM before), 0) FROM stored')})
    SELECT NOT EXISTS (SELECT FROM before) AS added FROM stored`,
  deleteOldest: `WITH gone AS (
      DELETE FROM plugboard.idempotency WHERE id IN (
        SELECT id FROM plugboard.idempotency WHERE NOT ${IS_ALIVE} AND project =
          (SELECT project FROM plugboard.idempotency GROUP BY project ORDER BY count(*) DESC LIMIT 1)
        ORDER BY id LIMIT $1)
      RETURNING project, ${RECORD_SIZE} AS bytes)
    ${addUsage('SELECT project, $2::int, 0, -sum(bytes) FROM gone GROUP BY project')}`,
} as const;
