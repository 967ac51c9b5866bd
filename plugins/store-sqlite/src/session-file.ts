import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import {
  type Clock,
  conversationId,
  type Message,
  SessionExists,
  type SessionId,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel';
import { badRow } from './errors.js';
import { columns, prepareAll, type Statements, stamp } from './statements.js';
import { decoded } from './stored-message.js';

/** How long the version of a deleted session is remembered. */
const TOMBSTONE_LIFE = 30 * 24 * 60 * 60_000;

/** What a session begins with, as it is written: metadata as JSON. */
interface Beginning {
  readonly metadata: string;
  readonly user: string | null;
}

/**
 * Sessions and their messages, as they stand in the file. Each method works in one go; those that write do so inside the caller's
 * transaction. Values reach SQLite as bound parameters only.
 *
 * A session that was deleted leaves its version in a tombstone, from which one that begins anew under its name goes on: as another row, which has
 * nothing to do with what is still to be deleted of the old one.
 */
export class SessionFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, database: DatabaseSync, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  load(id: SessionId): StoredSession {
    const session = this.#sql.load.get(...columns(id)) as LoadedRow | undefined;
    if (!session) return { version: this.#buried(id), messages: [], bytes: 0 };
    const rows = this.#sql.messages.all(session.id);
    const messages = rows.map((row) => this.#message(session, row));
    const bytes = rows.reduce((sum, { body }) => sum + Buffer.byteLength(String(body)), 0);
    const summary = session.text === null ? undefined : { messages: session.covered, text: session.text };
    return { version: session.version, messages, bytes, ...(summary && { summary }) };
  }

  version(id: SessionId): number {
    return this.#find(id)?.version ?? this.#buried(id);
  }

  turns(id: SessionId, { limit, order, after }: TurnPage): readonly StoredTurn[] {
    const session = this.#find(id);
    if (!session) return [];
    const count = session.version - session.base;
    const first = order === 'asc' ? (after ?? 0) + 1 : Math.max(1, Math.min((after ?? count + 1) - 1, count) - limit + 1);
    const last = order === 'asc' ? Math.min(first + limit - 1, count) : Math.min((after ?? count + 1) - 1, count);
    const turns: { turn: number; messages: Message[] }[] = [];
    for (let turn = first; turn <= last; turn++) turns.push({ turn, messages: [] });
    for (const row of this.#sql.someMessages.iterate(session.id, session.base + first, session.base + last))
      turns[Number(row.turn) - session.base - first]?.messages.push(this.#message(session, row));
    return order === 'asc' ? turns : turns.reverse();
  }

  /** @param bodies the messages of its first turn, each as JSON. @throws SessionExists */
  create(id: SessionId, metadata: string, bodies: readonly string[]): void {
    const base = this.#buried(id);
    const version = bodies.length > 0 ? base + 1 : base;
    const session = this.#add(id, base, version, { metadata, user: null });
    if (session === undefined) throw new SessionExists();
    this.#addMessages(session, version, bodies);
  }

  /** @param bodies the messages, each as JSON. @throws VersionConflict */
  commit(id: SessionId, expected: number, bodies: readonly string[], user: string | null): void {
    const session = this.#raise(id, expected, user) ?? this.#addFirst(id, expected, user);
    if (session === undefined) throw new VersionConflict(expected, this.version(id));
    this.#addMessages(session, expected + 1, bodies);
  }

  /** @param metadata as JSON. */
  setMetadata(id: SessionId, metadata: string): void {
    this.#sql.setMetadata.run(metadata, stamp(this.#clock), ...columns(id));
  }

  putSummary(id: SessionId, version: number, { messages, text }: Summary): void {
    this.#sql.putSummary.run(messages, text, ...columns(id), version);
  }

  /** Nothing happens where there is no such session. @throws SessionExists */
  fork(id: SessionId, key: string, turns: number): void {
    const copy = { ...id, key };
    if (this.#find(copy)) throw new SessionExists();
    const source = this.#sql.forkable.get(...columns(id)) as (SessionRow & Beginning) | undefined;
    if (!source) return;
    const base = this.#buried(copy);
    const count = Math.min(turns, source.version - source.base);
    const session = this.#add(copy, base, base + count, source) ?? null;
    this.#sql.copyMessages.run(session, base - source.base, source.id, source.base + count);
    this.#sql.copySummary.run(session, source.id, session);
  }

  /** @returns whether there was one. Its messages go step by step after it, and are in nobody's reach meanwhile. */
  delete(id: SessionId): boolean {
    const session = this.#sql.delete.get(...columns(id)) as { id: number; version: number } | undefined;
    if (!session) return false;
    this.#sql.addLeftover.run(session.id);
    this.#sql.bury.run(...columns(id), session.version + 1, stamp(this.#clock) + TOMBSTONE_LIFE);
    return true;
  }

  #find(id: SessionId): SessionRow | undefined {
    return this.#sql.find.get(...columns(id)) as SessionRow | undefined;
  }

  /** The version at which a session begins that is not there. */
  #buried(id: SessionId): number {
    return Number(this.#sql.buried.get(...columns(id), stamp(this.#clock))?.version ?? 0);
  }

  /** @returns the row, where the session is there and at that version. */
  #raise(id: SessionId, expected: number, user: string | null): number | undefined {
    const now = stamp(this.#clock);
    return idOf(this.#sql.raise.get(now, now, user, ...columns(id), expected));
  }

  /** @returns the row, where a session can begin after that version. */
  #addFirst(id: SessionId, expected: number, user: string | null): number | undefined {
    return this.#buried(id) === expected ? this.#add(id, expected, expected + 1, { metadata: '{}', user }) : undefined;
  }

  /** @returns the row, or undefined where the session is there already. */
  #add(id: SessionId, base: number, version: number, { metadata, user }: Beginning): number | undefined {
    const now = stamp(this.#clock);
    return idOf(this.#sql.add.get(...columns(id), conversationId(id), base, version, now, now, now, user, metadata));
  }

  #addMessages(session: number, turn: number, bodies: readonly string[]): void {
    for (const [place, body] of bodies.entries()) this.#sql.addMessage.run(session, turn, place, body);
  }

  #message({ id }: { readonly id: number }, { turn, place, body }: Record<string, SQLOutputValue>): Message {
    return decoded(body, (fault) => badRow(this.#path, `message ${place} of turn ${turn} of session ${id}`, fault));
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
  messages: 'SELECT turn, place, body FROM message WHERE session = ? ORDER BY turn, place',
  someMessages: 'SELECT turn, place, body FROM message WHERE session = ? AND turn BETWEEN ? AND ? ORDER BY turn, place',
  find: 'SELECT id, base, version FROM session WHERE project = ? AND agent = ? AND key = ?',
  buried: 'SELECT version FROM tombstone WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?',

  add: `INSERT INTO session (project, agent, key, conversation, base, version, created_at, updated_at, used_at, user, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
  raise: `UPDATE session SET version = version + 1, updated_at = ?, used_at = ?, user = coalesce(?, user)
    WHERE project = ? AND agent = ? AND key = ? AND version = ? RETURNING id`,
  addMessage: 'INSERT INTO message (session, turn, place, body) VALUES (?, ?, ?, ?)',
  setMetadata: 'UPDATE session SET metadata = ?, updated_at = ? WHERE project = ? AND agent = ? AND key = ?',
  putSummary: `INSERT OR REPLACE INTO summary (session, messages, text)
    SELECT id, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ? AND version = ?`,

  forkable: 'SELECT id, base, version, user, metadata FROM session WHERE project = ? AND agent = ? AND key = ?',
  copyMessages: `INSERT INTO message (session, turn, place, body)
    SELECT ?, turn + ?, place, body FROM message WHERE session = ? AND turn <= ?`,
  copySummary: `INSERT INTO summary (session, messages, text)
    SELECT ?, messages, text FROM summary WHERE session = ? AND messages <= (SELECT count(*) FROM message WHERE session = ?)`,

  delete: 'DELETE FROM session WHERE project = ? AND agent = ? AND key = ? RETURNING id, version',
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  bury: 'INSERT OR REPLACE INTO tombstone (project, agent, key, version, expires_at) VALUES (?, ?, ?, ?, ?)',
} as const;
