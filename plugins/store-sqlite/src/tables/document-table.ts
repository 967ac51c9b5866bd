import type { DatabaseSync } from 'node:sqlite';
import type { SessionId, StoredDocument } from '@plugboard/kernel/contracts';
import { columns, prepareAll, type Statements } from './statements.js';

/** The table of documents. A foreign key deletes them with their session. */
export class DocumentTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  /**
   * Does nothing if there is no such session.
   * @returns by how much the documents of sessions became larger, or smaller: this session, and
   *   another that had the name before.
   */
  put(id: SessionId, name: string, text: string): readonly Resized[] {
    const before = this.#sizeOf(id.project, name);
    const { changes } = this.#sql.put.run(name, text, ...columns(id));
    if (changes === 0) return [];
    return [...(before ? [before] : []), { id, bytes: Buffer.byteLength(text) }];
  }

  get(project: string, name: string, reserve?: (bytes: number) => void): StoredDocument | undefined {
    if (reserve) {
      const size = this.#sizeOf(project, name);
      if (!size) return undefined;
      reserve(-size.bytes);
    }
    const row = this.#sql.get.get(project, name) as DocumentRow | undefined;
    return row && { id: { project, agent: row.agent, key: row.key }, text: row.body };
  }

  /** @returns by how much its session became smaller; undefined if there was no document. */
  delete(project: string, name: string): Resized | undefined {
    const before = this.#sizeOf(project, name);
    this.#sql.delete.run(project, name);
    return before;
  }

  /** The number of documents of a session whose names begin like this one, up to the first `_`. */
  countLike(name: string, id: SessionId): number {
    return (this.#sql.countLike.get(...columns(id), name, name) as { readonly count: number }).count;
  }

  #sizeOf(project: string, name: string): Resized | undefined {
    const row = this.#sql.size.get(project, name) as SizeRow | undefined;
    return row && { id: { project, agent: row.agent, key: row.key }, bytes: -row.size };
  }
}

/** A change in the size of a session's documents. */
interface Resized {
  readonly id: SessionId;
  readonly bytes: number;
}

interface SizeRow {
  readonly agent: string;
  readonly key: string;
  readonly size: number;
}

interface DocumentRow {
  readonly agent: string;
  readonly key: string;
  readonly body: string;
}

const SQL = {
  put: `INSERT INTO document (session, project, name, body)
    SELECT id, project, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ?
    ON CONFLICT (project, name) DO UPDATE SET session = excluded.session, body = excluded.body`,
  get: 'SELECT agent, key, body FROM document JOIN session ON session.id = document.session WHERE document.project = ? AND name = ?',
  size: `SELECT agent, key, octet_length(body) AS size FROM document JOIN session ON session.id = document.session
    WHERE document.project = ? AND name = ?`,
  countLike: `SELECT count(*) AS count FROM document JOIN session ON session.id = document.session
    WHERE session.project = ? AND session.agent = ? AND session.key = ?
      AND substr(name, 1, instr(name, '_')) = substr(?, 1, instr(?, '_'))`,
  delete: 'DELETE FROM document WHERE project = ? AND name = ?',
} as const;
