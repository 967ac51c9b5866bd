import type { SessionId, SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import { BadRow, decodeMetadata, tryRow } from '@plugboard/store-kit';
import type { Database } from '../database/database.js';
import { BY_ID, fromColumn, idColumns, idOf, toColumn } from './columns.js';

/** Reads the rows of sessions without their messages. */
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
    ...(row.title !== null && { title: fromColumn(row.title) }),
    metadata: decodeMetadata(row.metadata, (problem) => new BadRow(`the metadata of session ${row.id}`, problem)),
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
}

const SELECT = `SELECT id, project, agent, key, conversation, base, version, created_at, updated_at, end_user, title, metadata, bytes
  FROM plugboard.session`;
/** Without a user, `$4` is null, and named so that it has a type. */
const PAGE = (user: 'end_user = $4' | '$4::text IS NULL', compare: '<' | '>', direction: 'ASC' | 'DESC') =>
  `${SELECT} WHERE project = $1 AND ${user} AND parent IS NULL AND (updated_at, id) ${compare} ($2::bigint, $3::bigint)
    AND ($5::text[] IS NULL OR agent = ANY($5)) ORDER BY updated_at ${direction}, id ${direction} LIMIT $6`;

export const SESSION_INFO_SQL = {
  byId: `${SELECT} WHERE ${BY_ID}`,
  find: `${SELECT} WHERE project = $1 AND conversation = $2 AND parent IS NULL`,
  rowOf: 'SELECT id FROM plugboard.session WHERE project = $1 AND conversation = $2',
  asc: PAGE('$4::text IS NULL', '>', 'ASC'),
  desc: PAGE('$4::text IS NULL', '<', 'DESC'),
  ascOfUser: PAGE('end_user = $4', '>', 'ASC'),
  descOfUser: PAGE('end_user = $4', '<', 'DESC'),
} as const;
