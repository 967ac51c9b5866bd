import type { SessionId, StoredDocument } from '@plugboard/kernel/contracts';
import type { Database } from '../database/database.js';
import { BY_ID, fromColumn, idColumns, idOf, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

/** The table of documents. A foreign key deletes them with their session. */
export class DocumentTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Does nothing if there is no such session. */
  async put(id: SessionId, name: string, text: string): Promise<void> {
    await this.#database.run(SQL.put, [...idColumns(id), toColumn(name), toColumn(text), anySlot()]);
  }

  async get(project: string, name: string, reserve?: (bytes: number) => void): Promise<StoredDocument | undefined> {
    const values = [toColumn(project), toColumn(name)];
    if (reserve) {
      const [size] = await this.#database.run<{ readonly bytes: number }>(SQL.size, values);
      if (!size) return undefined;
      reserve(size.bytes);
    }
    const [row] = await this.#database.run<SessionId & { readonly body: string }>(SQL.get, values);
    return row && { id: idOf(row), text: fromColumn(row.body) };
  }

  /** @returns how many of its kind the session has left; undefined if there was no document. */
  async delete(project: string, name: string): Promise<number | undefined> {
    const kind = name.slice(0, name.indexOf('_') + 1);
    const values = [toColumn(project), toColumn(name), toColumn(kind), anySlot()];
    const rows = await this.#database.transaction((query) => query<{ readonly left: number }>(SQL.delete, values));
    return rows[0]?.left;
  }
}

const SQL = {
  put: `WITH owner AS (SELECT id FROM plugboard.session WHERE ${BY_ID} FOR NO KEY UPDATE),
    before AS (SELECT session, octet_length(body) AS bytes FROM plugboard.document, owner WHERE project = $1 AND name = $4),
    added AS (
      INSERT INTO plugboard.document (project, name, session, body) SELECT $1, $4, id, $5 FROM owner
      ON CONFLICT (project, name) DO UPDATE SET session = excluded.session, body = excluded.body),
    changes AS (
      SELECT id, sum(more)::bigint AS more FROM (
        SELECT id, octet_length($5) AS more FROM owner UNION ALL SELECT session, -bytes FROM before) AS one GROUP BY id),
    resized AS (UPDATE plugboard.session SET bytes = bytes + more FROM changes WHERE session.id = changes.id)
    ${addUsage('SELECT $1, $6::int, 0, sum(more) FROM changes HAVING count(*) > 0')}`,
  get: `SELECT session.project, agent, key, body FROM plugboard.document JOIN plugboard.session ON session.id = session
    WHERE document.project = $1 AND name = $2`,
  size: 'SELECT octet_length(body)::bigint AS bytes FROM plugboard.document WHERE project = $1 AND name = $2',
  delete: `WITH gone AS (
      DELETE FROM plugboard.document WHERE project = $1 AND name = $2 RETURNING session, octet_length(body) AS bytes),
    resized AS (UPDATE plugboard.session SET bytes = session.bytes - gone.bytes FROM gone WHERE id = gone.session),
    counted AS (${addUsage('SELECT $1, $4::int, 0, -bytes FROM gone')})
    SELECT (SELECT count(*) FROM plugboard.document
      WHERE session = gone.session AND name <> $2 AND left(name, length($3)) = $3 AND ($3 <> '' OR strpos(name, '_') = 0)) AS left
    FROM gone`,
} as const;
