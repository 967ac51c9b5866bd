import type { SessionId, SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import { BadRow, decodeMetadata, tryRow } from '@plugboard/store-kit';
import type { Database } from '../database/database.js';
import { BY_ID, fromColumn, idColumns, idOf, toColumn } from './columns.js';
import { ALIVE } from './turn-table.js';

/** Reads the rows of sessions without their messages, and those whose first turn is in line. */
export class SessionInfoTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async get(id: SessionId): Promise<SessionInfo | undefined> {
    const [row] = await this.#database.run<InfoRow>(SESSION_INFO_SQL.byId, idColumns(id));
    return row && infoOf(row);
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    const [row] = await this.#database.run<InfoRow>(SESSION_INFO_SQL.find, [toColumn(project), toColumn(conversation)]);
    return row && infoOf(row);
  }

  /** A session that cannot be read is returned as its error, which the limit does not count. */
  async list(project: string, { limit, order, after, user, agents }: SessionPage): Promise<readonly (SessionInfo | BadRow)[]> {
    const column = toColumn(project);
    const filter = [user === undefined ? null : toColumn(user), agents?.map(toColumn) ?? null];
    const sql = SESSION_INFO_SQL[user === undefined ? order : (`${order}OfUser` as const)];
    const page: (SessionInfo | BadRow)[] = [];
    let position = after ? await this.#position(column, after) : ENDS[order];
    for (let left = limit; left > 0; ) {
      const rows = await this.#database.run<InfoRow>(sql, [column, ...position, ...filter, left]);
      const found = rows.map((row) => tryRow(() => infoOf(row)));
      page.push(...found);
      const last = rows.at(-1);
      if (!last || rows.length < left) break;
      left -= found.filter((one) => !(one instanceof BadRow)).length;
      position = [last.updated_at, last.id];
    }
    return page;
  }

  async #position(project: string, { conversation, updatedAt }: NonNullable<SessionPage['after']>): Promise<Position> {
    const [row] = await this.#database.run<{ readonly id: number }>(SESSION_INFO_SQL.rowOf, [project, toColumn(conversation)]);
    return [updatedAt, row?.id ?? 0];
  }
}

function infoOf(row: InfoRow): SessionInfo {
  return {
    id: idOf(row),
    conversation: row.conversation,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    turns: row.version - row.base,
    bytes: row.bytes,
    ...(row.end_user !== null && { user: fromColumn(row.end_user) }),
    ...(row.title && { title: fromColumn(row.title) }),
    metadata: decodeMetadata(row.metadata, (problem) => new BadRow(`the metadata of session ${row.id}`, problem)),
    isRunning: row.running,
  };
}

/** The position of a session in a list: its last activity and its row. */
type Position = readonly [updatedAt: number, id: number];

const ENDS: Readonly<Record<SessionPage['order'], Position>> = {
  asc: [Number.MIN_SAFE_INTEGER, 0],
  desc: [Number.MAX_SAFE_INTEGER, 0],
};

interface InfoRow extends SessionId {
  readonly id: number;
  readonly conversation: string;
  readonly base: number;
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly end_user: string | null;
  readonly title: string | null;
  readonly metadata: string;
  readonly bytes: number;
  readonly running: boolean;
}

/** Turns that are in line, work between turns aside. */
const IN_LINE = `ended_at IS NULL AND (turn.title IS NOT NULL OR input IS NOT NULL) AND ${ALIVE}`;
const SESSIONS = `SELECT id, project, agent, key, conversation, base, version, created_at, updated_at, end_user, title, metadata, bytes,
    parent, EXISTS (SELECT FROM plugboard.turn WHERE turn.project = session.project AND turn.agent = session.agent
      AND turn.key = session.key AND ${IN_LINE}) AS running
  FROM plugboard.session`;
/** Sessions whose first turn is in line: the first arrival of each. */
const PENDING = `SELECT * FROM (
    SELECT -seq AS id, project, agent, key, conversation, 0::bigint AS base, 0::bigint AS version, arrived_at AS created_at,
      arrived_at AS updated_at, end_user, title, '{}' AS metadata, 0::bigint AS bytes, parent, true AS running
    FROM plugboard.turn WHERE title IS NOT NULL AND ended_at IS NULL AND ${ALIVE}
      AND NOT EXISTS (SELECT FROM plugboard.session WHERE session.conversation = turn.conversation)
      AND NOT EXISTS (SELECT FROM plugboard.turn AS other WHERE other.conversation = turn.conversation
        AND other.title IS NOT NULL AND other.ended_at IS NULL AND other.seq < turn.seq)) AS pending`;
const EITHER = (condition: string) => `${SESSIONS} WHERE ${condition} UNION ALL ${PENDING} WHERE ${condition}`;
/** Without a user, `$4` is null, and named so that it has a type. */
const PAGE = (user: 'end_user = $4' | '$4::text IS NULL', compare: '<' | '>', direction: 'ASC' | 'DESC') => {
  const condition = `project = $1 AND ${user} AND parent IS NULL AND (updated_at, id) ${compare} ($2::bigint, $3::bigint)
    AND ($5::text[] IS NULL OR agent = ANY($5))`;
  const order = `ORDER BY updated_at ${direction}, id ${direction} LIMIT $6`;
  return `(${SESSIONS} WHERE ${condition} ${order}) UNION ALL (${PENDING} WHERE ${condition} ${order}) ${order}`;
};

const SESSION_INFO_SQL = {
  byId: EITHER(BY_ID),
  find: EITHER('project = $1 AND conversation = $2 AND parent IS NULL'),
  rowOf: `SELECT id FROM plugboard.session WHERE project = $1 AND conversation = $2
    UNION ALL SELECT id FROM (${PENDING}) AS one WHERE project = $1 AND conversation = $2`,
  asc: PAGE('$4::text IS NULL', '>', 'ASC'),
  desc: PAGE('$4::text IS NULL', '<', 'DESC'),
  ascOfUser: PAGE('end_user = $4', '>', 'ASC'),
  descOfUser: PAGE('end_user = $4', '<', 'DESC'),
} as const;
