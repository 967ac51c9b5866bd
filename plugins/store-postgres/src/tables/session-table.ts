import { randomUUID } from 'node:crypto';
import {
  conversationId,
  LeaseEnded,
  SessionExists,
  type SessionId,
  type Summary,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { sizeOf, TOMBSTONE_TTL } from '@plugboard/store-kit';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';
import { BY_ID, idColumns, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

/** A turn to store, as columns. */
export interface NewTurn {
  readonly id: SessionId;
  readonly expected: number;
  /** The messages, each as JSON. */
  readonly bodies: readonly string[];
  readonly record: string | null;
  readonly turnId: string;
  readonly user: string | null;
  readonly title: string | null;
  readonly bytes: number;
}

/** Makes the columns of a turn. @param turnId by default one that the store makes. */
export function newTurn(turn: Omit<NewTurn, 'bytes' | 'turnId'>, turnId: string = randomUUID()): NewTurn {
  const record = turn.record === null ? null : toColumn(turn.record);
  const title = turn.title === null ? null : toColumn(turn.title);
  const user = turn.user === null ? null : toColumn(turn.user);
  const bytes = sizeOf(turn.bodies) + Buffer.byteLength(record ?? '');
  return { ...turn, record, user, title, turnId: toColumn(turnId), bytes };
}

/** The tables of sessions, their summaries, and the versions that deleted ones left behind. */
export class SessionTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The version: of a session that does not exist, the one its predecessor left behind, or 0. */
  async version(id: SessionId, query: Query = (text, values) => this.#database.run(text, values)): Promise<number> {
    const [row] = await query<{ readonly version: number }>(SQL.version, idColumns(id));
    return row?.version ?? 0;
  }

  /**
   * Stores a turn and ends it. Session and lease are checked by the statement that stores: one of
   * them wrong, and it stores nothing.
   *
   * @param replica the server's row. @param isInLine whether the turn has a row of its own.
   * @throws VersionConflict, LeaseEnded
   */
  async commit(query: Query, turn: NewTurn, replica: number, isInLine: boolean): Promise<Committed> {
    const { id, expected, bodies, record, turnId, user, title, bytes } = turn;
    const values = [
      ...idColumns(id),
      expected,
      replica,
      turnId,
      bodies,
      record,
      user,
      title,
      bytes,
      conversationId(id),
      anySlot(),
      isInLine,
    ];
    const [row] = await query<CommitRow>(SQL.commit, values);
    if (row?.session != null) return { session: row.session, isAwaited: row.awaited };
    const version = await this.version(id, query);
    if (row?.leased || version !== expected) throw new VersionConflict(expected, version);
    throw new LeaseEnded('expired');
  }

  /** Whether a turn was stored, for a commit whose answer was lost. */
  async hasTurn(query: Query, { turnId }: NewTurn): Promise<boolean> {
    return (await query('SELECT FROM plugboard.record WHERE turn_id = $1', [turnId])).length > 0;
  }

  /**
   * @param metadata as JSON. @param bodies the messages of the first turn, each as JSON.
   * @throws SessionExists
   */
  async create(id: SessionId, metadata: string, bodies: readonly string[], title: string | null): Promise<void> {
    const bytes = Buffer.byteLength(metadata) + sizeOf(bodies);
    const values = [...idColumns(id), conversationId(id), metadata, bodies, title, bytes, anySlot()];
    await this.#database.transaction(async (query) => {
      const [row] = await query<{ readonly session: number | null }>(SQL.create, values);
      if (row?.session == null) throw new SessionExists();
    });
  }

  /** @param metadata as JSON. */
  async setMetadata(id: SessionId, metadata: string): Promise<void> {
    await this.#database.run(SQL.setMetadata, [...idColumns(id), metadata, anySlot()]);
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#database.run(SQL.putSummary, [...idColumns(id), version, messages, toColumn(text)]);
  }

  /** Deletes a session with all that belongs to it. @returns whether it existed. */
  async delete(id: SessionId): Promise<boolean> {
    const values = [...idColumns(id), TOMBSTONE_TTL, anySlot(), conversationId(id)];
    const rows = await this.#database.transaction((query) => query<{ readonly existed: boolean }>(SQL.delete, values));
    return rows[0]?.existed ?? false;
  }
}

/** What a commit stored. */
interface Committed {
  /** The row of the session. */
  readonly session: number;
  /** Whether others wait for the end of the turn. */
  readonly isAwaited: boolean;
}

interface CommitRow {
  /** Null: nothing was stored. */
  readonly session: number | null;
  /** Whether the turn's row was there, if it has one, and its server alive. */
  readonly leased: boolean;
  readonly awaited: boolean;
}

/** The version that a deleted session left behind. */
const LEFT = `(SELECT version FROM plugboard.tombstone WHERE ${BY_ID} AND expires_at > ${Database.NOW})`;

/** The version of a session, or the one it left behind. No row: 0. */
export const CURRENT_VERSION = `SELECT version FROM plugboard.session WHERE ${BY_ID} UNION ALL ${LEFT}
  ORDER BY version DESC LIMIT 1`;

const SQL = {
  version: CURRENT_VERSION,

  // The row of the turn is locked, so that no other server takes the session meanwhile.
  commit: `WITH own AS (
      SELECT parent, end_why FROM plugboard.turn JOIN plugboard.replica ON replica.id = turn.replica
      WHERE turn_id = $6 AND turn.replica = $5 AND expires_at > clock_timestamp() FOR UPDATE OF turn),
    leased AS (
      SELECT FROM own UNION ALL
      SELECT FROM plugboard.replica WHERE id = $5 AND expires_at > clock_timestamp() AND NOT $14),
    changed AS (
      UPDATE plugboard.session SET version = version + 1, updated_at = ${Database.NOW}, bytes = bytes + $11::bigint,
        end_user = coalesce($9, end_user), title = coalesce(title, $10)
      WHERE ${BY_ID} AND version = $4::bigint AND EXISTS (SELECT FROM leased) RETURNING id),
    started AS (
      INSERT INTO plugboard.session (project, agent, key, conversation, base, version, created_at, updated_at,
        end_user, title, metadata, bytes, parent)
      SELECT $1, $2, $3, $12, $4::bigint, $4::bigint + 1, now, now, $9, $10, '{}', $11::bigint + 2, (SELECT parent FROM own)
      FROM (SELECT ${Database.NOW} AS now) AS clock
      WHERE EXISTS (SELECT FROM leased) AND NOT EXISTS (SELECT FROM changed) AND coalesce(${LEFT}, 0) = $4::bigint
      ON CONFLICT DO NOTHING RETURNING id),
    stored AS (SELECT id, 0 AS added FROM changed UNION ALL SELECT id, 1 FROM started),
    messages AS (
      INSERT INTO plugboard.message (session, turn, place, body)
      SELECT id, $4::bigint + 1, place - 1, body FROM stored, unnest($7::text[]) WITH ORDINALITY AS one (body, place)),
    records AS (
      INSERT INTO plugboard.record (session, turn, turn_id, body) SELECT id, $4::bigint + 1, $6, $8 FROM stored),
    counted AS (${addUsage('SELECT $1, $13::int, added, $11::bigint + 2 * added FROM stored')}),
    ended AS (DELETE FROM plugboard.turn WHERE turn_id = $6 AND EXISTS (SELECT FROM stored))
    SELECT (SELECT id FROM stored) AS session, EXISTS (SELECT FROM leased) AS leased,
      EXISTS (SELECT FROM own WHERE end_why IS NOT NULL)
        OR EXISTS (SELECT FROM plugboard.turn WHERE ${BY_ID} AND turn_id <> $6 AND ended_at IS NULL) AS awaited`,

  create: `WITH made AS (
      INSERT INTO plugboard.session (project, agent, key, conversation, base, version, created_at, updated_at,
        title, metadata, bytes)
      SELECT $1, $2, $3, $4, base, base + (cardinality($6::text[]) > 0)::int, now, now, $7, $5, $8::bigint
      FROM (SELECT coalesce(${LEFT}, 0) AS base, ${Database.NOW} AS now) AS start
      ON CONFLICT DO NOTHING RETURNING id, version),
    messages AS (
      INSERT INTO plugboard.message (session, turn, place, body)
      SELECT id, version, place - 1, body FROM made, unnest($6::text[]) WITH ORDINALITY AS one (body, place)),
    records AS (
      INSERT INTO plugboard.record (session, turn) SELECT id, version FROM made WHERE cardinality($6::text[]) > 0),
    counted AS (${addUsage('SELECT $1, $9::int, 1, $8::bigint FROM made')})
    SELECT (SELECT id FROM made) AS session`,

  setMetadata: `WITH before AS (SELECT id, octet_length(metadata) AS bytes FROM plugboard.session WHERE ${BY_ID} FOR UPDATE),
    changed AS (
      UPDATE plugboard.session SET metadata = $4, bytes = session.bytes + octet_length($4) - before.bytes
      FROM before WHERE session.id = before.id RETURNING octet_length($4) - before.bytes AS more)
    ${addUsage('SELECT $1, $5::int, 0, more FROM changed')}`,

  putSummary: `INSERT INTO plugboard.summary (session, messages, body)
    SELECT id, $5::bigint, $6 FROM plugboard.session WHERE ${BY_ID} AND version = $4::bigint
    ON CONFLICT (session) DO UPDATE SET messages = excluded.messages, body = excluded.body`,

  delete: `WITH gone AS (
      DELETE FROM plugboard.session WHERE (${BY_ID}) OR (project = $1 AND parent = $6)
      RETURNING id, project, agent, key, version, bytes),
    messages AS (DELETE FROM plugboard.message WHERE session IN (SELECT id FROM gone)),
    records AS (DELETE FROM plugboard.record WHERE session IN (SELECT id FROM gone)),
    turns AS (
      DELETE FROM plugboard.turn USING gone
      WHERE turn.project = gone.project AND turn.agent = gone.agent AND turn.key = gone.key AND input IS NOT NULL),
    kept AS (
      INSERT INTO plugboard.tombstone (project, agent, key, version, expires_at)
      SELECT project, agent, key, version + 1, ${Database.NOW} + $4::bigint FROM gone
      ON CONFLICT (project, agent, key) DO UPDATE SET version = excluded.version, expires_at = excluded.expires_at),
    counted AS (${addUsage('SELECT project, $5::int, -count(*), -sum(bytes) FROM gone GROUP BY project')})
    SELECT EXISTS (SELECT FROM gone WHERE ${BY_ID}) AS existed`,
} as const;
