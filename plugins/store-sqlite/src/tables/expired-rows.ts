import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import { prepareAll, type Statements, TOMBSTONE_TTL, timestamp } from './statements.js';

/** Maximum number of rows of each kind that one step deletes. That takes a few milliseconds, during which nothing else runs. */
const STEP_ROWS = 100;
const STEP_MESSAGES = 500;

/** Deletes expired rows and the messages of deleted sessions. */
export class ExpiredRows {
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync, clock: Clock) {
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /**
   * One small step. An expired session is deleted at once and its messages step by step after it. Like a deleted
   * session it leaves its version behind, so that a new session with its id is not taken for it.
   *
   * @param ttl milliseconds that sessions and interrupted turns are kept.
   * @returns whether there may be more to delete.
   */
  sweep(ttl: number): boolean {
    const now = timestamp(this.#clock);
    const sessions = this.#sql.expiredSessions.all(now - ttl, STEP_ROWS);
    for (const { id } of sessions) {
      this.#sql.addLeftover.run(id ?? null);
      this.#sql.addTombstone.run(now + TOMBSTONE_TTL, id ?? null);
      this.#sql.deleteSession.run(id ?? null);
    }
    const leftover = this.#sql.leftover.get()?.session ?? null;
    if (leftover !== null && this.#sql.deleteMessages.run(leftover, leftover, STEP_MESSAGES).changes < STEP_MESSAGES)
      this.#sql.deleteLeftover.run(leftover);
    const turns = this.#sql.deleteTurns.run(now - ttl, STEP_ROWS).changes;
    const pendingCalls = this.#sql.deletePendingCalls.run(now, STEP_ROWS).changes;
    const tombstones = this.#sql.deleteTombstones.run(now, STEP_ROWS).changes;
    return leftover !== null || [sessions.length, turns, pendingCalls, tombstones].includes(STEP_ROWS);
  }
}

const SQL = {
  expiredSessions: 'SELECT id FROM session WHERE used_at <= ? ORDER BY used_at LIMIT ?',
  addTombstone: `INSERT OR REPLACE INTO tombstone (project, agent, key, version, expires_at)
    SELECT project, agent, key, version + 1, ? FROM session WHERE id = ?`,
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  deleteSession: 'DELETE FROM session WHERE id = ?',
  leftover: 'SELECT session FROM leftover LIMIT 1',
  deleteMessages: `DELETE FROM message WHERE session = ?
    AND (turn, place) IN (SELECT turn, place FROM message WHERE session = ? ORDER BY turn, place LIMIT ?)`,
  deleteLeftover: 'DELETE FROM leftover WHERE session = ?',
  deleteTurns: 'DELETE FROM turn WHERE rowid IN (SELECT rowid FROM turn WHERE interrupted_at <= ? LIMIT ?)',
  deletePendingCalls: 'DELETE FROM parked WHERE id IN (SELECT id FROM parked WHERE expires_at <= ? LIMIT ?)',
  deleteTombstones: 'DELETE FROM tombstone WHERE id IN (SELECT id FROM tombstone WHERE expires_at <= ? LIMIT ?)',
} as const;
