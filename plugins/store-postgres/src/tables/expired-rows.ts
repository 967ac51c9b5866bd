import { TOMBSTONE_TTL } from '@plugboard/store-kit';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';
import { RECORD_SIZE } from './idempotency-table.js';
import { addUsage, anySlot } from './project-usage.js';

/** Rows of each kind that one step deletes. */
const STEP_ROWS = 100;
/** Bytes of sessions that one step deletes, and the session that exceeds them. */
const STEP_BYTES = 16 * 1024 * 1024;

/** Deletes expired rows. */
export class ExpiredRows {
  readonly #database: Database;
  readonly #ttl: number;

  /** @param ttl milliseconds that sessions and interrupted turns are kept. */
  constructor(database: Database, ttl: number) {
    this.#database = database;
    this.#ttl = ttl;
  }

  /**
   * One small step, by one server at a time. An expired session leaves its version behind, like a
   * deleted one. A session with a running turn does not expire.
   *
   * @returns whether there may be more.
   */
  sweep(): Promise<boolean> {
    return this.#database.transaction(
      async (query) => {
        const [lock] = await query<{ readonly held: boolean }>(SQL.lock);
        if (!lock?.held) return false;
        const slot = anySlot();
        const deleted = [
          await count(query, SQL.sessions, [this.#ttl, STEP_ROWS, STEP_BYTES, TOMBSTONE_TTL, slot]),
          await count(query, SQL.turns, [this.#ttl, STEP_ROWS]),
          await count(query, SQL.pendingCalls, [STEP_ROWS, slot]),
          await count(query, SQL.records, [STEP_ROWS, slot]),
          await count(query, SQL.state, [STEP_ROWS]),
          await count(query, SQL.tombstones, [STEP_ROWS]),
          await count(query, SQL.rates, [STEP_ROWS]),
          await count(query, SQL.holds, [STEP_ROWS]),
          await count(query, SQL.interest, [STEP_ROWS]),
          await count(query, SQL.live, [STEP_ROWS]),
        ];
        return deleted.some((n) => n > 0);
      },
      async () => false, // what was deleted is not found again
    );
  }
}

async function count(query: Query, sql: string, values: readonly unknown[]): Promise<number> {
  const [row] = await query<{ readonly n: number }>(sql, values);
  return row?.n ?? 0;
}

/** What servers left behind that no longer live. */
const OF_DEAD_SERVERS = (table: string) => `WITH gone AS (DELETE FROM plugboard.${table} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM plugboard.${table} WHERE NOT EXISTS (
        SELECT FROM plugboard.replica WHERE replica.id = ${table}.replica AND expires_at > clock_timestamp()) LIMIT $1)) RETURNING replica)
    SELECT count(*) AS n FROM gone`;

const SQL = {
  lock: `SELECT pg_try_advisory_xact_lock(hashtext('plugboard sweep'), 'plugboard.session'::regclass::oid::int) AS held`,
  sessions: `WITH old AS (
      SELECT id, sum(bytes) OVER (ORDER BY updated_at, id) - bytes AS before FROM plugboard.session
      WHERE updated_at <= ${Database.NOW} - $1::bigint AND NOT EXISTS (
        SELECT FROM plugboard.turn WHERE turn.project = session.project AND turn.agent = session.agent
          AND turn.key = session.key AND ended_at IS NULL)
      ORDER BY updated_at, id LIMIT $2),
    gone AS (
      DELETE FROM plugboard.session WHERE id IN (SELECT id FROM old WHERE before < $3)
      RETURNING id, project, agent, key, version, bytes),
    messages AS (DELETE FROM plugboard.message WHERE session IN (SELECT id FROM gone)),
    records AS (DELETE FROM plugboard.record WHERE session IN (SELECT id FROM gone)),
    kept AS (
      INSERT INTO plugboard.tombstone (project, agent, key, version, expires_at)
      SELECT project, agent, key, version + 1, ${Database.NOW} + $4::bigint FROM gone
      ON CONFLICT (project, agent, key) DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at),
    counted AS (${addUsage('SELECT project, $5::int, -count(*), -sum(bytes) FROM gone GROUP BY project ORDER BY project')})
    SELECT count(*) AS n FROM gone`,
  turns: `WITH gone AS (DELETE FROM plugboard.turn WHERE seq IN (
      SELECT seq FROM plugboard.turn WHERE ended_at <= ${Database.NOW} - $1::bigint LIMIT $2) RETURNING seq)
    SELECT count(*) AS n FROM gone`,
  pendingCalls: `WITH gone AS (DELETE FROM plugboard.pending_call WHERE id IN (
      SELECT id FROM plugboard.pending_call WHERE expires_at <= ${Database.NOW} LIMIT $1)
      RETURNING project, octet_length(messages)::bigint AS bytes),
    counted AS (${addUsage('SELECT project, $2::int, 0, -sum(bytes) FROM gone GROUP BY project ORDER BY project')})
    SELECT count(*) AS n FROM gone`,
  records: `WITH gone AS (DELETE FROM plugboard.idempotency WHERE id IN (
      SELECT id FROM plugboard.idempotency WHERE expires_at <= ${Database.NOW} LIMIT $1)
      RETURNING project, ${RECORD_SIZE} AS bytes),
    counted AS (${addUsage('SELECT project, $2::int, 0, -sum(bytes) FROM gone GROUP BY project ORDER BY project')})
    SELECT count(*) AS n FROM gone`,
  state: `WITH gone AS (DELETE FROM plugboard.state WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM plugboard.state WHERE expires_at <= ${Database.NOW} LIMIT $1)) RETURNING entry)
    SELECT count(*) AS n FROM gone`,
  tombstones: `WITH gone AS (DELETE FROM plugboard.tombstone WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM plugboard.tombstone WHERE expires_at <= ${Database.NOW} LIMIT $1)) RETURNING key)
    SELECT count(*) AS n FROM gone`,
  rates: `WITH gone AS (DELETE FROM plugboard.rate WHERE name = ANY (ARRAY(
      SELECT name FROM plugboard.rate
      WHERE used <= (${Database.NOW} - counted_at) * per_minute / 60000 LIMIT $1)) RETURNING name)
    SELECT count(*) AS n FROM gone`,
  holds: OF_DEAD_SERVERS('hold'),
  interest: OF_DEAD_SERVERS('interest'),
  live: OF_DEAD_SERVERS('live'),
} as const;
