import type { DatabaseSync } from 'node:sqlite';
import type { SessionId, SessionInfo, SessionPage } from '@plugboard/kernel';
import { badRow, StoreError } from './errors.js';
import { columns, prepareAll, type Statements } from './statements.js';
import { decodedMetadata } from './stored-metadata.js';

/** What is known of sessions besides their messages, as it stands in the file. */
export class FactFile {
  readonly #path: string;
  readonly #sql: Statements<keyof typeof FACT_SQL>;

  constructor(path: string, database: DatabaseSync) {
    this.#path = path;
    this.#sql = prepareAll(database, FACT_SQL);
  }

  of(id: SessionId): SessionInfo | undefined {
    const row = this.#sql.byName.get(...columns(id));
    return row && this.#info(row as unknown as FactRow);
  }

  find(project: string, conversation: string): SessionInfo | undefined {
    const row = this.#sql.byConversation.get(project, conversation);
    return row && this.#info(row as unknown as FactRow);
  }

  /** In the place of a session that cannot be read stands the error, and it does not count as one of the page. */
  list(project: string, { limit, order, after, user, agents }: SessionPage): readonly (SessionInfo | StoreError)[] {
    const among = agents ? JSON.stringify(agents) : null;
    const start = after === undefined ? ENDS[order] : this.#placeOf(project, after, among);
    if (!start) return [];
    const rows =
      user === undefined
        ? this.#sql[order].iterate(project, ...start, among, among)
        : this.#sql[`${order}OfUser`].iterate(project, user, ...start, among, among);
    const page: (SessionInfo | StoreError)[] = [];
    let left = limit;
    for (const row of rows) {
      if (left === 0) break;
      const found = this.#attempt(row as unknown as FactRow);
      if (!(found instanceof StoreError)) left--;
      page.push(found);
    }
    return page;
  }

  #placeOf(project: string, conversation: string, among: string | null): Place | undefined {
    const row = this.#sql.place.get(project, conversation, among, among) as { created_at: number; id: number } | undefined;
    return row && [row.created_at, row.id];
  }

  #attempt(row: FactRow): SessionInfo | StoreError {
    try {
      return this.#info(row);
    } catch (error) {
      if (error instanceof StoreError) return error;
      throw error;
    }
  }

  #info(row: FactRow): SessionInfo {
    const { project, agent, key, conversation, user } = row;
    return {
      id: { project, agent, key },
      conversation,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      turns: row.version - row.base,
      ...(user !== null && { user }),
      metadata: decodedMetadata(row.metadata, (fault) => badRow(this.#path, `the metadata of session ${row.id}`, fault)),
    };
  }
}

/** Where a session stands in a list: when it was created, and its row. */
type Place = readonly [createdAt: number, id: number];

const ENDS: Readonly<Record<SessionPage['order'], Place>> = {
  asc: [Number.MIN_SAFE_INTEGER, 0],
  desc: [Number.MAX_SAFE_INTEGER, 0],
};

interface FactRow {
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
  readonly metadata: string;
}

const COLUMNS = 'id, project, agent, key, conversation, base, version, created_at, updated_at, user, metadata';
/** Of these agents, or of all where there is no list of them. */
const AMONG = '(? IS NULL OR agent IN (SELECT value FROM json_each(?)))';
const ASC = `(created_at, id) > (?, ?) AND ${AMONG} ORDER BY created_at, id`;
const DESC = `(created_at, id) < (?, ?) AND ${AMONG} ORDER BY created_at DESC, id DESC`;

export const FACT_SQL = {
  byName: `SELECT ${COLUMNS} FROM session WHERE project = ? AND agent = ? AND key = ?`,
  byConversation: `SELECT ${COLUMNS} FROM session WHERE project = ? AND conversation = ?`,
  place: `SELECT created_at, id FROM session WHERE project = ? AND conversation = ? AND ${AMONG}`,
  asc: `SELECT ${COLUMNS} FROM session WHERE project = ? AND ${ASC}`,
  desc: `SELECT ${COLUMNS} FROM session WHERE project = ? AND ${DESC}`,
  ascOfUser: `SELECT ${COLUMNS} FROM session WHERE project = ? AND user = ? AND ${ASC}`,
  descOfUser: `SELECT ${COLUMNS} FROM session WHERE project = ? AND user = ? AND ${DESC}`,
} as const;
