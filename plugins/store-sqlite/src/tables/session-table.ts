import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import {
  conversationId,
  type ExpiryClock,
  SessionExists,
  type SessionId,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { sizeOf } from '@plugboard/store-kit';
import { MessageTable } from './message-table.js';
import type { Usage } from './project-usage.js';
import { columns, prepareAll, type Statements, TOMBSTONE_TTL, timestamp } from './statements.js';

/** What a new row is filled with. */
interface NewRow {
  /** The version before the first turn. */
  readonly base: number;
  readonly version: number;
  /** As JSON. */
  readonly metadata: string;
  readonly user: string | null;
  readonly title: string | null;
  /** The opaque id of the session that it belongs to. */
  readonly parent?: string | null;
  /** Size of the messages, their records and the metadata. */
  readonly bytes: number;
}

/** Of what is shown, and of what expires. */
interface Clocks {
  readonly clock: Clock;
  readonly expiry: ExpiryClock;
}

/** A turn to store. */
export interface NewTurn {
  /** The messages, each as JSON. */
  readonly bodies: readonly string[];
  readonly record: string | undefined;
}

/** A turn to store, and what its session belongs to. */
interface BegunTurn extends NewTurn {
  readonly parent: SessionId | undefined;
}

export function sizeOfTurn({ bodies, record = '' }: NewTurn): number {
  return sizeOf(bodies) + Buffer.byteLength(record);
}

/**
 * The tables of sessions, their summaries and the tombstones of deleted ones. Every method is
 * synchronous; those that write run inside the caller's transaction. Values reach SQLite only as
 * bound parameters.
 *
 * A deleted session leaves its version in a tombstone. A new session with the same id continues
 * from that version, in a new row, which is independent of what is still to be deleted of the old
 * one.
 */
export class SessionTable {
  readonly #messages: MessageTable;
  readonly #clock: Clock;
  readonly #expiry: ExpiryClock;
  readonly #usePrecision: number;
  readonly #sql: Statements<keyof typeof SQL>;

  /**
   * @param usePrecision milliseconds by which the last use of a session may be later than its row
   * says.
   */
  constructor(database: DatabaseSync, { clock, expiry }: Clocks, usePrecision: number) {
    this.#messages = new MessageTable(database);
    this.#clock = clock;
    this.#expiry = expiry;
    this.#usePrecision = usePrecision;
    this.#sql = prepareAll(database, SQL);
    // Run in each turn: an array costs less than an object.
    this.#sql.version.setReturnArrays(true);
    this.#sql.used.setReturnArrays(true);
  }

  load(id: SessionId): StoredSession {
    const session = this.#sql.load.get(...columns(id)) as LoadedRow | undefined;
    if (!session) return { version: this.initialVersion(id), turns: 0, messages: [], bytes: 0 };
    const summary = session.text === null ? undefined : { messages: session.covered, text: session.text };
    const { version } = session;
    return { version, turns: version - session.base, ...this.#messages.load(session.id), ...(summary && { summary }) };
  }

  version(id: SessionId): number {
    const row = this.#sql.version.get(...columns(id)) as [number] | undefined;
    return row ? row[0] : this.initialVersion(id);
  }

  exists(id: SessionId): boolean {
    return this.#find(id) !== undefined;
  }

  turns(id: SessionId, { limit, order, after, maxBytes = Number.POSITIVE_INFINITY, reserve }: TurnPage): readonly StoredTurn[] {
    const session = this.#find(id);
    if (!session) return [];
    const count = session.version - session.base;
    const step = order === 'asc' ? 1 : -1;
    const first = order === 'asc' ? (after ?? 0) + 1 : Math.min((after ?? count + 1) - 1, count);
    const page: StoredTurn[] = [];
    for (let turn = first, size = 0; turn >= 1 && turn <= count && page.length < limit && size < maxBytes; turn += step) {
      reserve?.(this.#messages.sizeOf(session.id, session.base + turn));
      const { messages, bytes, record } = this.#messages.turn(session.id, session.base + turn);
      page.push({ turn, messages, ...(record !== undefined && { record }) });
      size += bytes;
    }
    return page;
  }

  /**
   * @param bodies the messages of the first turn, each as JSON. @param title by these messages.
   * @throws SessionExists
   */
  create(id: SessionId, metadata: string, bodies: readonly string[], title: string | null): void {
    const base = this.initialVersion(id);
    const version = bodies.length > 0 ? base + 1 : base;
    const bytes = Buffer.byteLength(metadata) + sizeOf(bodies);
    const session = this.insert(id, { base, version, metadata, user: null, title, bytes });
    if (session === undefined) throw new SessionExists();
    this.#messages.add(session, version, bodies);
  }

  /**
   * @param titleOf returns the title by the messages.
   * @returns by how much the session grew. @throws VersionConflict
   */
  commit(
    id: SessionId,
    expected: number,
    { bodies, record, parent }: BegunTurn,
    user: string | null,
    titleOf: () => string | undefined,
  ): Usage {
    const bytes = sizeOfTurn({ bodies, record });
    const session = this.#increment(id, expected, bytes, user, titleOf);
    const isNew = session === undefined;
    const row = session ?? this.#insertFirst(id, expected, bytes, { user, title: titleOf() ?? null, parent });
    if (row === undefined) throw new VersionConflict(expected, this.version(id));
    this.#messages.add(row, expected + 1, bodies, record);
    return isNew ? { project: id.project, sessions: 1, bytes: bytes + NO_METADATA.length } : { project: id.project, bytes };
  }

  /** @param metadata as JSON. @returns by how much the session grew. */
  setMetadata(id: SessionId, metadata: string): Usage {
    const before = this.#sql.metadataSize.get(...columns(id))?.size;
    const bytes = before === undefined ? 0 : Buffer.byteLength(metadata) - Number(before);
    this.#sql.setMetadata.run(metadata, bytes, ...columns(id));
    return { project: id.project, bytes };
  }

  /** Counts a change in the size of the documents or approvals of a session. */
  resize(id: SessionId, bytes: number): Usage {
    this.#sql.resize.run(bytes, ...columns(id));
    return { project: id.project, bytes };
  }

  putSummary(id: SessionId, version: number, { messages, text }: Summary): void {
    this.#sql.putSummary.run(messages, text, ...columns(id), version);
  }

  /**
   * Deletes a session. Its messages are out of reach at once and deleted in steps (`ExpiredRows`).
   * @returns what is freed; undefined if there was none.
   */
  delete(id: SessionId): Usage | undefined {
    const session = this.#sql.delete.get(...columns(id)) as { id: number; version: number; bytes: number } | undefined;
    if (!session) return undefined;
    this.#sql.addLeftover.run(session.id);
    this.#sql.addTombstone.run(...columns(id), session.version + 1, this.#expiry.stamp() + TOMBSTONE_TTL);
    return { project: id.project, sessions: -1, bytes: -session.bytes };
  }

  /** The sessions that belong to a session. */
  childrenOf(id: SessionId): readonly SessionId[] {
    return this.#sql.children.all(conversationId(id)) as unknown as readonly SessionId[];
  }

  /** The version of a session that does not exist: the one its predecessor left behind, or 0. */
  initialVersion(id: SessionId): number {
    return Number(this.#sql.tombstone.get(...columns(id), this.#expiry.now())?.version ?? 0);
  }

  #find(id: SessionId): SessionRow | undefined {
    return this.#sql.find.get(...columns(id)) as SessionRow | undefined;
  }

  /** @returns the row id, or undefined if there is no session at that version. */
  #increment(
    id: SessionId,
    expected: number,
    bytes: number,
    user: string | null,
    titleOf: () => string | undefined,
  ): number | undefined {
    const row = this.#sql.used.get(...columns(id), expected) as UsedRow | undefined;
    if (!row) return undefined;
    const [session, usedAt, oldUser, oldTitle] = row;
    this.#sql.increment.run(timestamp(this.#clock), bytes, session);
    // Only where they change: both columns are indexed.
    const used = this.#expiry.stamp();
    if (used - usedAt > this.#usePrecision) this.#sql.setUsed.run(used, session);
    if (user !== null && user !== oldUser) this.#sql.setUser.run(user, session);
    const title = oldTitle === null ? titleOf() : undefined;
    if (title !== undefined) this.#sql.setTitle.run(title, session);
    return session;
  }

  /** @returns the row id, or undefined if a new session would not start at that version. */
  #insertFirst(
    id: SessionId,
    expected: number,
    bytes: number,
    { user, title, parent }: Pick<NewRow, 'user' | 'title'> & Pick<BegunTurn, 'parent'>,
  ): number | undefined {
    if (this.initialVersion(id) !== expected) return undefined;
    const size = bytes + NO_METADATA.length;
    const versions = { base: expected, version: expected + 1 };
    const owner = parent ? conversationId(parent) : null;
    return this.insert(id, { ...versions, metadata: NO_METADATA, user, title, parent: owner, bytes: size });
  }

  /**
   * @param row the id, under which messages may have been copied before.
   * @returns the row id, or undefined if the session exists.
   */
  insert(id: SessionId, made: NewRow, row: number | null = null): number | undefined {
    const { base, version, user, title, metadata, bytes, parent = null } = made;
    const now = timestamp(this.#clock);
    const values = [
      row,
      ...columns(id),
      conversationId(id),
      base,
      version,
      now,
      now,
      this.#expiry.stamp(),
      user,
      title,
      metadata,
      bytes,
      parent,
    ];
    return idOf(this.#sql.insert.get(...values));
  }
}

const NO_METADATA = '{}';

interface SessionRow {
  readonly id: number;
  readonly base: number;
  readonly version: number;
}

/** The columns `id`, `used_at`, `user` and `title`. */
type UsedRow = readonly [number, number, string | null, string | null];

interface LoadedRow {
  readonly id: number;
  readonly base: number;
  readonly version: number;
  readonly covered: number;
  readonly text: string | null;
}

function idOf(row: Record<string, SQLOutputValue> | undefined): number | undefined {
  return row && Number(row.id);
}

const SQL = {
  load: `SELECT id, base, version, messages AS covered, text FROM session LEFT JOIN summary ON session = id
    WHERE project = ? AND agent = ? AND key = ?`,
  version: 'SELECT version FROM session WHERE project = ? AND agent = ? AND key = ?',
  find: 'SELECT id, base, version FROM session WHERE project = ? AND agent = ? AND key = ?',
  tombstone: 'SELECT version FROM tombstone WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?',

  insert: `INSERT INTO session
      (id, project, agent, key, conversation, base, version, created_at, updated_at, used_at, user, title, metadata, bytes, parent)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id`,
  // Costs less, together with `increment`, than an update that returns what it has changed.
  used: 'SELECT id, used_at, user, title FROM session WHERE project = ? AND agent = ? AND key = ? AND version = ?',
  increment: 'UPDATE session SET version = version + 1, updated_at = ?, bytes = bytes + ? WHERE id = ?',
  setUsed: 'UPDATE session SET used_at = ? WHERE id = ?',
  setUser: 'UPDATE session SET user = ? WHERE id = ?',
  setTitle: 'UPDATE session SET title = ? WHERE id = ?',
  metadataSize: 'SELECT octet_length(metadata) AS size FROM session WHERE project = ? AND agent = ? AND key = ?',
  setMetadata: 'UPDATE session SET metadata = ?, bytes = bytes + ? WHERE project = ? AND agent = ? AND key = ?',
  resize: 'UPDATE session SET bytes = bytes + ? WHERE project = ? AND agent = ? AND key = ?',
  putSummary: `INSERT OR REPLACE INTO summary (session, messages, text)
    SELECT id, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ? AND version = ?`,

  children: 'SELECT project, agent, key FROM session WHERE parent = ?',
  delete: 'DELETE FROM session WHERE project = ? AND agent = ? AND key = ? RETURNING id, version, bytes',
  addLeftover: 'INSERT INTO leftover (session) VALUES (?)',
  addTombstone: 'INSERT OR REPLACE INTO tombstone (project, agent, key, version, expires_at) VALUES (?, ?, ?, ?, ?)',
} as const;
