import type { DatabaseSync } from 'node:sqlite';
import type { SessionId, StoredDocument } from '@plugboard/kernel/contracts';
import { columns, prepareAll, type Statements } from './statements.js';

/** The table of documents. A foreign key deletes them with their session. */
export class DocumentTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  /** Does nothing if there is no such session. */
  put(id: SessionId, name: string, text: string): void {
    this.#sql.put.run(name, text, ...columns(id));
  }

  get(project: string, name: string): StoredDocument | undefined {
    const row = this.#sql.get.get(project, name) as DocumentRow | undefined;
    return row && { id: { project, agent: row.agent, key: row.key }, text: row.body };
  }

  delete(project: string, name: string): boolean {
    return this.#sql.delete.run(project, name).changes > 0;
  }
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
  delete: 'DELETE FROM document WHERE project = ? AND name = ?',
} as const;
