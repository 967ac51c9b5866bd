import type { ExpiryClock } from '@plugboard/kernel/contracts';
import { TOMBSTONE_TTL } from '@plugboard/store-kit';
import type { OpenedDatabase } from '../database/open-database.js';
import type { Usage } from './project-usage.js';
import { prepareAll, type Statements } from './statements.js';

/** Rows of each kind that one step deletes: a few milliseconds, in which nothing else runs. */
const STEP_ROWS = 100;
const STEP_MESSAGES = 500;

/** Deletes expired rows and the messages of deleted sessions. */
export class ExpiredRows {
  readonly #opening: number;
  readonly #clock: ExpiryClock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor({ database, opening }: OpenedDatabase, clock: ExpiryClock) {
    this.#opening = opening;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /**
   * One small step. An expired session is deleted at once and its messages step by step after it.
   * Like a deleted session it leaves its version behind, so that a new session with its id is not
   * mistaken for the old one. A session with a running turn does not expire.
   *
   * @param ttl milliseconds that sessions and interrupted turns are kept.
   * @param usePrecision milliseconds by which the last use of a session may be later than its row
   *   says.
   */
  sweep(ttl: number, usePrecision: number): Swept {
    const now = this.#clock.now();
    this.#sql.touchRunning.run(this.#clock.stamp(), now - ttl);
    const expired = this.#sql.expiredSessions.all(now - ttl - usePrecision, STEP_ROWS) as unknown as readonly ExpiredRow[];
    for (const { id } of expired) {
      this.#sql.addLeftover.run(id);
      this.#sql.addTombstone.run(this.#clock.stamp() + TOMBSTONE_TTL, id);
      this.#sql.deleteSession.run(id);
    }
    const leftover = this.#sql.leftover.get(this.#opening)?.session ?? null;
    if (leftover !== null && this.#sql.deleteMessages.run(leftover, leftover, STEP_MESSAGES).changes < STEP_MESSAGES)
      this.#sql.deleteLeftover.run(leftover);
    const turns = this.#sql.deleteTurns.run(now - ttl, STEP_ROWS).changes;
    const pendingCalls = this.#sql.expiredPendingCalls.all(now, STEP_ROWS) as unknown as readonly PendingCallRow[];
    for (const { id } of pendingCalls) this.#sql.deletePendingCall.run(id);
    const tombstones = this.#sql.deleteTombstones.run(now, STEP_ROWS).changes;
    const hasMore = leftover !== null || [expired.length, turns, pendingCalls.length, tombstones].includes(STEP_ROWS);
    const freed = [
      ...expired.map(({ project, bytes }) => ({ project, sessions: -1, bytes: -bytes })),
      ...pendingCalls.flatMap(({ project, bytes }) => (project === null ? [] : [{ project, bytes: -bytes }])),
    ];
    return { hasMore, freed };
  }
}

export interface Swept {
  /** Whether there may be more to delete. */
  readonly hasMore: boolean;
  /** What projects store less than before. */
  readonly freed: readonly Usage[];
}

interface PendingCallRow {
  readonly id: number;
  /** Null if later calls took its keys. */
  readonly project: string | null;
  readonly bytes: number;
}

interface ExpiredRow {
  readonly id: number;
  readonly project: string;
  readonly bytes: number;
}

const SQL = {
  touchRunning: `UPDATE session SET used_at = ? WHERE used_at <= ? AND (project, agent, key) IN
    (SELECT project, agent, key FROM turn WHERE interrupted_at IS NULL)`,
  expiredSessions: 'SELECT id, project, bytes FROM session WHERE used_at <= ? ORDER BY used_at LIMIT ?',
  addTombstone: `INSERT OR REPLACE INTO tombstone (project, agent, key, version, expires_at)
    SELECT project, agent, key, version + 1, ? FROM session WHERE id = ?`,
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  deleteSession: 'DELETE FROM session WHERE id = ?',
  leftover: 'SELECT session FROM leftover WHERE opening IS NULL OR opening < ? LIMIT 1', // not a fork that is being copied
  deleteMessages: `DELETE FROM message WHERE session = ?
    AND (turn, place) IN (SELECT turn, place FROM message WHERE session = ? ORDER BY turn, place LIMIT ?)`,
  deleteLeftover: 'DELETE FROM leftover WHERE session = ?',
  deleteTurns: 'DELETE FROM turn WHERE rowid IN (SELECT rowid FROM turn WHERE interrupted_at <= ? LIMIT ?)',
  expiredPendingCalls: `SELECT id, octet_length(messages) AS bytes,
      (SELECT project FROM pending_tool_call_key WHERE call = id LIMIT 1) AS project
    FROM pending_tool_call WHERE expires_at <= ? LIMIT ?`,
  deletePendingCall: 'DELETE FROM pending_tool_call WHERE id = ?',
  deleteTombstones: 'DELETE FROM tombstone WHERE id IN (SELECT id FROM tombstone WHERE expires_at <= ? LIMIT ?)',
} as const;
