import type { DatabaseSync } from 'node:sqlite';
import type { ApprovalChange, ApprovalPage, SessionId, StoredApproval } from '@plugboard/kernel/contracts';
import { columns, prepareAll, type Statements } from './statements.js';

/** The table of requests for approval. A foreign key deletes them with their session. */
export class ApprovalTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  /** @returns by how much the session grew. */
  put(id: SessionId, approvals: readonly ApprovalChange[]): number {
    let bytes = 0;
    for (const { id: name, waits, text } of approvals) {
      bytes += Buffer.byteLength(text) - this.#sizeOf(id.project, name);
      this.#sql.put.run(name, waits ? 1 : 0, text, ...columns(id));
    }
    return bytes;
  }

  get(project: string, name: string): StoredApproval | undefined {
    const row = this.#sql.get.get(project, name) as unknown as ApprovalRow | undefined;
    return row && approvalOf(project, row);
  }

  waiting(project: string, { limit, order, after, agents, reserve }: ApprovalPage): readonly StoredApproval[] {
    const filter = agents === undefined ? null : JSON.stringify(agents);
    const wanted = [project, after ?? null, after ?? null, filter, filter, limit];
    const sizes = order === 'asc' ? this.#sql.oldestSize : this.#sql.newestSize;
    reserve?.(Number(sizes.get(...wanted)?.size ?? 0));
    const statement = order === 'asc' ? this.#sql.oldest : this.#sql.newest;
    const rows = statement.all(...wanted) as unknown as ApprovalRow[];
    return rows.map((row) => approvalOf(project, row));
  }

  /** @returns by how much the session grew; undefined if the approval has changed. */
  replace(read: StoredApproval, { waits, text }: Omit<ApprovalChange, 'id'>): number | undefined {
    const { project } = read.session;
    const { changes } = this.#sql.replace.run(waits ? 1 : 0, text, project, read.id, read.text);
    return changes === 0 ? undefined : Buffer.byteLength(text) - Buffer.byteLength(read.text);
  }

  #sizeOf(project: string, name: string): number {
    const row = this.#sql.size.get(project, name) as { readonly size: number } | undefined;
    return row?.size ?? 0;
  }
}

interface ApprovalRow {
  readonly name: string;
  readonly agent: string;
  readonly key: string;
  readonly waits: number;
  readonly body: string;
}

function approvalOf(project: string, { name, agent, key, waits, body }: ApprovalRow): StoredApproval {
  return { id: name, session: { project, agent, key }, waits: waits === 1, text: body };
}

const JOINED = (what: string) =>
  `SELECT ${what} FROM approval JOIN session ON session.id = approval.session WHERE approval.project = ?`;
const ROW = 'name, agent, key, waits, body';
const LISTED = (what: string, compare: '<' | '>', order: 'ASC' | 'DESC') => `${JOINED(what)} AND waits = 1
  AND (? IS NULL OR approval.id ${compare} (SELECT id FROM approval AS last WHERE last.project = approval.project AND last.name = ?))
  AND (? IS NULL OR agent IN (SELECT value FROM json_each(?)))
  ORDER BY approval.id ${order} LIMIT ?`;

const SQL = {
  put: `INSERT INTO approval (session, project, name, waits, body)
    SELECT session.id, session.project, ?, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ?
    ON CONFLICT (project, name) DO UPDATE SET waits = excluded.waits, body = excluded.body`,
  get: `${JOINED(ROW)} AND name = ?`,
  size: 'SELECT octet_length(body) AS size FROM approval WHERE project = ? AND name = ?',
  oldest: LISTED(ROW, '>', 'ASC'),
  newest: LISTED(ROW, '<', 'DESC'),
  oldestSize: `SELECT total(size) AS size FROM (${LISTED('octet_length(body) AS size', '>', 'ASC')})`,
  newestSize: `SELECT total(size) AS size FROM (${LISTED('octet_length(body) AS size', '<', 'DESC')})`,
  replace: 'UPDATE approval SET waits = ?, body = ? WHERE project = ? AND name = ? AND body = ?',
} as const;
