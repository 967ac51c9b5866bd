import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  type Clock,
  type InterruptedTurn,
  type Message,
  type ParkOwner,
  type SessionId,
  type StoredSession,
  VersionConflict,
} from '@plugboard/kernel';
import { badRow, StoreError } from './errors.js';
import { IdempotencyFile } from './idempotency-file.js';
import type { OpenedFile } from './open-file.js';
import { decoded, decodedList } from './stored-message.js';

const HOUR = 60 * 60_000;

/** What one step of sweeping deletes at most, of each kind. So many rows take a few milliseconds, in which nothing else runs. */
const SWEEP_SESSIONS = 100;
const SWEEP_MESSAGES = 500;

/**
 * What stands in the file, and the statements that read and write it. Each method works in one go; those that write do so inside the caller's
 * transaction. Values reach SQLite as bound parameters only. Stamps are milliseconds of the wall clock, because they outlive the process.
 */
export class SessionFile {
  readonly answers: IdempotencyFile;
  readonly #path: string;
  readonly #opening: number;
  readonly #clock: Clock;
  readonly #sql: Statements;

  constructor(path: string, { database, opening }: OpenedFile, clock: Clock) {
    this.#path = path;
    this.#opening = opening;
    this.#clock = clock;
    this.#sql = prepareAll(database);
    this.answers = new IdempotencyFile(database, clock);
  }

  load(id: SessionId): StoredSession {
    const session = this.#sql.session.get(...columns(id)) as { id: number; version: number } | undefined;
    if (!session) return { version: 0, messages: [] };
    const rows = this.#sql.messages.all(session.id);
    const messages = rows.map(({ turn, place, body }) =>
      decoded(body, (fault) => badRow(this.#path, `message ${place} of turn ${turn} of session ${session.id}`, fault)),
    );
    return { version: session.version, messages };
  }

  version(id: SessionId): number {
    return (this.#sql.session.get(...columns(id)) as { version: number } | undefined)?.version ?? 0;
  }

  /** @param input a list of messages as JSON. */
  begin(id: SessionId, turnId: string, input: string): void {
    const now = this.#now();
    this.#sql.beginTurn.run(...columns(id), turnId, this.#opening, now, input);
    this.#sql.use.run(now, ...columns(id)); // so that it is not swept while the turn runs
  }

  /** @param bodies the messages, each as JSON. @throws VersionConflict */
  commit(id: SessionId, turnId: string | undefined, expected: number, bodies: readonly string[]): void {
    const row = (
      expected === 0
        ? this.#sql.addSession.get(...columns(id), this.#now())
        : this.#sql.raiseVersion.get(this.#now(), ...columns(id), expected)
    ) as { id: number } | undefined;
    if (!row) throw new VersionConflict(expected, this.version(id));
    for (const [place, body] of bodies.entries()) this.#sql.addMessage.run(row.id, expected + 1, place, body);
    if (turnId !== undefined) this.endTurn(id, turnId);
  }

  endTurn(id: SessionId, turnId: string): void {
    this.#sql.endTurn.run(turnId, ...columns(id));
  }

  /**
   * Marks the turns of dead processes as interrupted, and tells of each once: in the place of one whose input cannot be read stands the error.
   * They stay in the file as long as a session would.
   */
  recover(): readonly (InterruptedTurn | StoreError)[] {
    const rows = this.#sql.interrupt.all(this.#now(), this.#opening) as unknown as readonly (SessionId & InterruptedRow)[];
    return rows.map(({ project, agent, key, turn_id, rowid, input }) => {
      try {
        const messages = decodedList(input, (fault) => badRow(this.#path, `the input of turn row ${rowid}`, fault));
        return { id: { project, agent, key }, turnId: turn_id, input: messages };
      } catch (error) {
        if (error instanceof StoreError) return error;
        throw error;
      }
    });
  }

  /** @param messages a list of messages as JSON. */
  park({ project, agent }: ParkOwner, keys: readonly string[], messages: string): void {
    const { lastInsertRowid } = this.#sql.park.run(messages, this.#now() + HOUR);
    for (const key of keys) this.#sql.parkKey.run(project, agent, key, lastInsertRowid);
  }

  parked({ project, agent }: ParkOwner, key: string): readonly Message[] | undefined {
    const row = this.#sql.parked.get(project, agent, key, this.#now());
    return row && decodedList(row.messages, (fault) => badRow(this.#path, `parked row ${row.id}`, fault));
  }

  /**
   * One small step of deleting what is older than `ttl` milliseconds. A session goes at once, and its messages step by step after it.
   * @returns whether there may be more to delete.
   */
  sweep(ttl: number): boolean {
    const now = this.#now();
    const sessions = this.#sql.expiredSessions.all(now - ttl, SWEEP_SESSIONS);
    for (const { id } of sessions) {
      this.#sql.addLeftover.run(id ?? null);
      this.#sql.deleteSession.run(id ?? null);
    }
    const leftover = this.#sql.leftover.get()?.session ?? null;
    if (leftover !== null && this.#sql.deleteMessages.run(leftover, leftover, SWEEP_MESSAGES).changes < SWEEP_MESSAGES)
      this.#sql.deleteLeftover.run(leftover);
    const turns = this.#sql.deleteTurns.run(now - ttl, SWEEP_SESSIONS).changes;
    const parked = this.#sql.deleteParked.run(now, SWEEP_SESSIONS).changes;
    const hasMoreAnswers = this.answers.sweep();
    return hasMoreAnswers || leftover !== null || sessions.length > 0 || turns === SWEEP_SESSIONS || parked === SWEEP_SESSIONS;
  }

  /** Stamps are whole numbers, which a clock need not give. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }
}

interface InterruptedRow {
  readonly rowid: number;
  readonly turn_id: string;
  readonly input: string;
}

function columns({ project, agent, key }: SessionId): [string, string, string] {
  return [project, agent, key];
}

type Statements = Readonly<Record<keyof typeof SQL, StatementSync>>;

function prepareAll(database: DatabaseSync): Statements {
  return Object.fromEntries(Object.entries(SQL).map(([name, text]) => [name, database.prepare(text)])) as Statements;
}

const SQL = {
  session: 'SELECT id, version FROM session WHERE project = ? AND agent = ? AND key = ?',
  messages: 'SELECT turn, place, body FROM message WHERE session = ? ORDER BY turn, place',
  addSession: `INSERT INTO session (project, agent, key, version, used_at) VALUES (?, ?, ?, 1, ?)
    ON CONFLICT DO NOTHING RETURNING id`,
  raiseVersion: `UPDATE session SET version = version + 1, used_at = ?
    WHERE project = ? AND agent = ? AND key = ? AND version = ? RETURNING id`,
  addMessage: 'INSERT INTO message (session, turn, place, body) VALUES (?, ?, ?, ?)',
  use: 'UPDATE session SET used_at = ? WHERE project = ? AND agent = ? AND key = ?',

  beginTurn: 'INSERT INTO turn (project, agent, key, turn_id, opening, began_at, input) VALUES (?, ?, ?, ?, ?, ?, ?)',
  endTurn: 'DELETE FROM turn WHERE turn_id = ? AND project = ? AND agent = ? AND key = ? AND interrupted_at IS NULL',
  interrupt: `UPDATE turn SET interrupted_at = ? WHERE interrupted_at IS NULL AND opening < ?
    RETURNING rowid, project, agent, key, turn_id, input`,

  park: 'INSERT INTO parked (messages, expires_at) VALUES (?, ?)',
  parkKey: 'INSERT OR REPLACE INTO parked_key (project, agent, key, parked) VALUES (?, ?, ?, ?)',
  parked: `SELECT id, messages FROM parked_key JOIN parked ON id = parked
    WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?`,

  expiredSessions: 'SELECT id FROM session WHERE used_at <= ? ORDER BY used_at LIMIT ?',
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  deleteSession: 'DELETE FROM session WHERE id = ?',
  leftover: 'SELECT session FROM leftover LIMIT 1',
  deleteMessages: `DELETE FROM message WHERE session = ?
    AND (turn, place) IN (SELECT turn, place FROM message WHERE session = ? ORDER BY turn, place LIMIT ?)`,
  deleteLeftover: 'DELETE FROM leftover WHERE session = ?',
  deleteTurns: 'DELETE FROM turn WHERE rowid IN (SELECT rowid FROM turn WHERE interrupted_at <= ? LIMIT ?)',
  deleteParked: 'DELETE FROM parked WHERE id IN (SELECT id FROM parked WHERE expires_at <= ? LIMIT ?)',
} as const;
