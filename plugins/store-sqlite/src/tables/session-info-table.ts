import type { DatabaseSync } from 'node:sqlite';
import type { SessionId, SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import { BadRow, decodeMetadata, tryRow } from '@plugboard/store-kit';
import { columns, prepareAll, type Statements } from './statements.js';

/** Reads the rows of sessions without their messages. */
export class SessionInfoTable {
  readonly #sql: Statements<keyof typeof SESSION_INFO_SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SESSION_INFO_SQL);
  }

  get(id: SessionId): SessionInfo | undefined {
    const row = this.#sql.byName.get(...columns(id));
    return row && this.#info(row as unknown as InfoRow);
  }

  find(project: string, conversation: string): SessionInfo | undefined {
    const row = this.#sql.byConversation.get(project, conversation);
    return row && this.#info(row as unknown as InfoRow);
  }

  /** A session that cannot be read is returned as its error, which the limit does not count. */
  list(project: string, { limit, order, after, user, agents }: SessionPage): readonly (SessionInfo | BadRow)[] {
    const allowed = agents ? JSON.stringify(agents) : null;
    const start = after === undefined ? ENDS[order] : this.#position(project, after);
    const rows =
      user === undefined
        ? this.#sql[order].iterate(project, ...start, allowed)
        : this.#sql[`${order}OfUser`].iterate(project, ...start, allowed, user);
    const page: (SessionInfo | BadRow)[] = [];
    let left = limit;
    for (const row of rows) {
      if (left === 0) break;
      const found = tryRow(() => this.#info(row as unknown as InfoRow));
      if (!(found instanceof BadRow)) left--;
      page.push(found);
    }
    return page;
  }

  #position(project: string, { conversation, updatedAt }: NonNullable<SessionPage['after']>): Position {
    return [updatedAt, Number(this.#sql.rowOf.get(project, conversation)?.id ?? 0)];
  }

  #info(row: InfoRow): SessionInfo {
    const { project, agent, key, conversation, user, title } = row;
    return {
      id: { project, agent, key },
      conversation,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      turns: row.version - row.base,
      bytes: row.bytes,
      ...(user !== null && { user }),
      ...(title !== null && { title }),
      metadata: decodeMetadata(row.metadata, (problem) => new BadRow(`the metadata of session ${row.id}`, problem)),
    };
  }
}

/** The position of a session in a list: its last activity and its row. */
type Position = readonly [updatedAt: number, id: number];

const ENDS: Readonly<Record<SessionPage['order'], Position>> = {
  asc: [Number.MIN_SAFE_INTEGER, 0],
  desc: [Number.MAX_SAFE_INTEGER, 0],
};

interface InfoRow {
  readonly id: number;
  readonly project: string;
  readonly agent: string;
  readonly key: string;
  readonly conversation: string;
  readonly base: number;
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly user: string | null;
  readonly title: string | null;
  readonly metadata: string;
  readonly bytes: number;
}

const COLUMNS = 'id, project, agent, key, conversation, base, version, created_at, updated_at, user, title, metadata, bytes';
/** `?2` and `?3` are a position; `?4` has the agents, all if it is null. */
const OF_PROJECT = `SELECT ${COLUMNS} FROM session WHERE project = ?1 AND parent IS NULL
  AND (?4 IS NULL OR agent IN (SELECT value FROM json_each(?4)))`;
const OF_USER = `${OF_PROJECT} AND user = ?5`;

/**
 * The sessions beyond a position. In two parts, because SQLite finds the first row of each in an
 * index: for `(updated_at, id) > (?2, ?3)` it would read all sessions of the same millisecond.
 */
function beyond(sessions: string, sign: '<' | '>', direction: 'ASC' | 'DESC'): string {
  return `${sessions} AND updated_at = ?2 AND id ${sign} ?3 UNION ALL ${sessions} AND updated_at ${sign} ?2
    ORDER BY updated_at ${direction}, id ${direction}`;
}

export const SESSION_INFO_SQL = {
  byName: `SELECT ${COLUMNS} FROM session WHERE project = ? AND agent = ? AND key = ?`,
  byConversation: `SELECT ${COLUMNS} FROM session WHERE project = ? AND conversation = ? AND parent IS NULL`,
  rowOf: 'SELECT id FROM session WHERE project = ? AND conversation = ?',
  asc: beyond(OF_PROJECT, '>', 'ASC'),
  desc: beyond(OF_PROJECT, '<', 'DESC'),
  ascOfUser: beyond(OF_USER, '>', 'ASC'),
  descOfUser: beyond(OF_USER, '<', 'DESC'),
} as const;
