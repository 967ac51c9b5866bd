import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import {
  conversationId,
  SessionExists,
  type SessionId,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { MessageTable } from './message-table.js';
import { columns, prepareAll, type Statements, TOMBSTONE_TTL, timestamp } from './statements.js';

/** What a new row is filled with. Metadata is JSON. */
interface NewRow {
  readonly metadata: string;
  readonly user: string | null;
}

/**
 * The tables of sessions, their summaries and the tombstones of deleted ones. Every method is synchronous; those that write run inside
 * the caller's transaction. Values reach SQLite only as bound parameters.
 *
 * A deleted session leaves its version in a tombstone. A new session with the same id continues from that version, in a row of its own,
 * which is independent of what is still to be deleted of the old one.
 */
export class SessionTable {
  readonly #messages: MessageTable;
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, database: DatabaseSync, clock: Clock) {
    this.#messages = new MessageTable(path, database);
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  load(id: SessionId): StoredSession {
    const session = this.#sql.load.get(...columns(id)) as LoadedRow | undefined;
    if (!session) return { version: this.#initialVersion(id), messages: [], bytes: 0 };
    const summary = session.text === null ? undefined : { messages: session.covered, text: session.text };
    return { version: session.version, ...this.#messages.load(session.id), ...(summary && { summary }) };
  }

  version(id: SessionId): number {
    return this.#find(id)?.version ?? this.#initialVersion(id);
  }

  turns(id: SessionId, { limit, order, after, maxBytes = Number.POSITIVE_INFINITY }: TurnPage): readonly StoredTurn[] {
    const session = this.#find(id);
    if (!session) return [];
    const count = session.version - session.base;
    const step = order === 'asc' ? 1 : -1;
    const first = order === 'asc' ? (after ?? 0) + 1 : Math.min((after ?? count + 1) - 1, count);
    const page: StoredTurn[] = [];
    for (let turn = first, size = 0; turn >= 1 && turn <= count && page.length < limit && size < maxBytes; turn += step) {
      const { messages, bytes } = this.#messages.turn(session.id, session.base + turn);
      page.push({ turn, messages });
      size += bytes;
    }
    return page;
  }

  /** @param bodies the messages of the first turn, each as JSON. @throws SessionExists */
  create(id: SessionId, metadata: string, bodies: readonly string[]): void {
    const base = this.#initialVersion(id);
    const version = bodies.length > 0 ? base + 1 : base;
    const session = this.#insert(id, base, version, { metadata, user: null });
    if (session === undefined) throw new SessionExists();
    this.#messages.add(session, version, bodies);
  }

  /** @param bodies the messages, each as JSON. @throws VersionConflict */
  commit(id: SessionId, expected: number, bodies: readonly string[], user: string | null): void {
    const session = this.#increment(id, expected, user) ?? this.#insertFirst(id, expected, user);
    if (session === undefined) throw new VersionConflict(expected, this.version(id));
    this.#messages.add(session, expected + 1, bodies);
  }

  /** @param metadata as JSON. */
  setMetadata(id: SessionId, metadata: string): void {
    this.#sql.setMetadata.run(metadata, timestamp(this.#clock), ...columns(id));
  }

  putSummary(id: SessionId, version: number, { messages, text }: Summary): void {
    this.#sql.putSummary.run(messages, text, ...columns(id), version);
  }

  /** Does nothing if there is no such session. @throws SessionExists */
  fork(id: SessionId, key: string, turns: number): void {
    const copyId = { ...id, key };
    if (this.#find(copyId)) throw new SessionExists();
    const source = this.#sql.findToFork.get(...columns(id)) as (SessionRow & NewRow) | undefined;
    if (!source) return;
    const base = this.#initialVersion(copyId);
    const count = Math.min(turns, source.version - source.base);
    const copy = this.#insert(copyId, base, base + count, source);
    if (copy === undefined) throw new SessionExists();
    this.#messages.copy(source.id, copy, source.base + count, base - source.base);
    this.#sql.copySummary.run(copy, source.id, copy);
  }

  /** @returns whether it existed. Its messages are out of reach at once and deleted in steps (`ExpiredRows`). */
  delete(id: SessionId): boolean {
    const session = this.#sql.delete.get(...columns(id)) as { id: number; version: number } | undefined;
    if (!session) return false;
    this.#sql.addLeftover.run(session.id);
    this.#sql.addTombstone.run(...columns(id), session.version + 1, timestamp(this.#clock) + TOMBSTONE_TTL);
    return true;
  }

  #find(id: SessionId): SessionRow | undefined {
    return this.#sql.find.get(...columns(id)) as SessionRow | undefined;
  }

  /** The version of a session that does not exist: the one its predecessor left behind, or 0. */
  #initialVersion(id: SessionId): number {
    return Number(this.#sql.tombstone.get(...columns(id), timestamp(this.#clock))?.version ?? 0);
  }

  /** @returns the row id, or undefined if there is no session at that version. */
  #increment(id: SessionId, expected: number, user: string | null): number | undefined {
    const now = timestamp(this.#clock);
    return idOf(this.#sql.increment.get(now, now, user, ...columns(id), expected));
  }

  /** @returns the row id, or undefined if a new session would not start at that version. */
  #insertFirst(id: SessionId, expected: number, user: string | null): number | undefined {
    if (this.#initialVersion(id) !== expected) return undefined;
    return this.#insert(id, expected, expected + 1, { metadata: '{}', user });
  }

  /** @returns the row id, or undefined if the session exists. */
  #insert(id: SessionId, base: number, version: number, { metadata, user }: NewRow): number | undefined {
    const now = timestamp(this.#clock);
    return idOf(this.#sql.insert.get(...columns(id), conversationId(id), base, version, now, now, now, user, metadata));
  }
}

interface SessionRow {
  readonly id: number;
  readonly base: number;
  readonly version: number;
}

interface LoadedRow {
  readonly id: number;
  readonly version: number;
  readonly covered: number;
  readonly text: string | null;
}

function idOf(row: Record<string, SQLOutputValue> | undefined): number | undefined {
  return row && Number(row.id);
}

const SQL = {
  load: `SELECT id, version, messages AS covered, text FROM session LEFT JOIN summary ON session = id
    WHERE project = ? AND agent = ? AND key = ?`,
  find: 'SELECT id, base, version FROM session WHERE project = ? AND agent = ? AND key = ?',
  tombstone: 'SELECT version FROM tombstone WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?',

  insert: `INSERT INTO session (project, agent, key, conversation, base, version, created_at, updated_at, used_at, user, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
  increment: `UPDATE session SET version = version + 1, updated_at = ?, used_at = ?, user = coalesce(?, user)
    WHERE project = ? AND agent = ? AND key = ? AND version = ? RETURNING id`,
  setMetadata: 'UPDATE session SET metadata = ?, updated_at = ? WHERE project = ? AND agent = ? AND key = ?',
  putSummary: `INSERT OR REPLACE INTO summary (session, messages, text)
    SELECT id, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ? AND version = ?`,

  findToFork: 'SELECT id, base, version, user, metadata FROM session WHERE project = ? AND agent = ? AND key = ?',
  copySummary: `INSERT INTO summary (session, messages, text)
    SELECT ?, messages, text FROM summary WHERE session = ? AND messages <= (SELECT count(*) FROM message WHERE session = ?)`,

  delete: 'DELETE FROM session WHERE project = ? AND agent = ? AND key = ? RETURNING id, version',
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  addTombstone: 'INSERT OR REPLACE INTO tombstone (project, agent, key, version, expires_at) VALUES (?, ?, ?, ?, ?)',
} as const;
