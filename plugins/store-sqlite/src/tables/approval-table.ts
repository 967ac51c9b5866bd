import type { DatabaseSync } from 'node:sqlite';
import type { ApprovalChange, ApprovalPage, SessionId, StoredApproval } from '@plugboard/kernel/contracts';
import { columns, prepareAll, type Statements } from './statements.js';

/** An approval without its text. */
type Listed = Omit<StoredApproval, 'text'>;

/** The table of requests for approval. A foreign key deletes them with their session. */
export class ApprovalTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  /** @returns by how much the session grew. */
  put(id: SessionId, approvals: readonly ApprovalChange[]): number {
    let bytes = 0;
    for (const { id: name, waits, caller, expiresAt, listed, text } of approvals) {
      bytes += Buffer.byteLength(listed) + Buffer.byteLength(text) - this.#sizeOf(id.project, name);
      this.#sql.put.run(name, waits ? 1 : 0, caller, expiresAt, listed, text, ...columns(id));
    }
    return bytes;
  }

  get(project: string, names: readonly string[], reserve?: (bytes: number) => void): readonly StoredApproval[] {
    if (reserve) for (const name of names) reserve(this.#sizeOf(project, name));
    const rows = this.#sql.get.all(project, JSON.stringify(names)) as unknown as readonly ApprovalRow[];
    return rows.map((row) => ({ ...approvalOf(project, row), text: row.body }));
  }

  find(project: string, name: string): Listed | undefined {
    const row = this.#sql.find.get(project, name) as unknown as ApprovalRow | undefined;
    return row && approvalOf(project, row);
  }

  waiting(project: string, page: ApprovalPage): readonly Listed[] {
    const { limit, order, after, agents, caller, expiresAfter = 0, reserve } = page;
    const last = after === undefined ? ENDS[order] : this.#sql.rowOf.get(project, after)?.id;
    if (last === undefined) return [];
    const filter = agents === undefined ? null : JSON.stringify(agents);
    const wanted = [Number(last), expiresAfter, filter, filter, limit];
    const rows =
      caller === undefined
        ? this.#sql[order].all(project, ...wanted)
        : this.#sql[`${order}OfCaller`].all(project, caller, ...wanted);
    return rows.map((row) => {
      reserve?.(Number(row.size));
      const listed = String(this.#sql.listed.get(Number(row.id))?.listed);
      return approvalOf(project, { ...(row as unknown as ApprovalRow), listed });
    });
  }

  /** @returns by how much the session grew; undefined if the approval has changed. */
  replace({ id, session, text: before }: StoredApproval, { waits, text }: Pick<ApprovalChange, 'waits' | 'text'>) {
    const { changes } = this.#sql.replace.run(waits ? 1 : 0, text, session.project, id, before);
    return changes === 0 ? undefined : Buffer.byteLength(text) - Buffer.byteLength(before);
  }

  #sizeOf(project: string, name: string): number {
    return Number(this.#sql.size.get(project, name)?.size ?? 0);
  }
}

interface ApprovalRow {
  readonly name: string;
  readonly agent: string;
  readonly key: string;
  readonly waits: number;
  readonly caller: string;
  readonly expiresAt: number;
  readonly listed: string;
  readonly body: string;
}

function approvalOf(project: string, { name, agent, key, waits, caller, expiresAt, listed }: ApprovalRow): Listed {
  return { id: name, session: { project, agent, key }, waits: waits === 1, caller, expiresAt, listed };
}

/** Where a list begins. */
const ENDS = { asc: 0, desc: Number.MAX_SAFE_INTEGER } as const;

const COLUMNS = 'name, agent, key, waits, caller, expires_at AS expiresAt';
/** Reads the index alone, up to what is on the page. The outer table stays the outer one. */
const LISTED = (compare: '<' | '>', caller: '' | 'AND caller = ?') =>
  `SELECT approval.id, ${COLUMNS}, octet_length(listed) AS size
  FROM approval CROSS JOIN session ON session.id = approval.session
  WHERE approval.project = ? ${caller} AND waits = 1 AND approval.id ${compare} ? AND expires_at > ?
  AND (? IS NULL OR agent IN (SELECT value FROM json_each(?)))
  ORDER BY approval.id ${compare === '>' ? 'ASC' : 'DESC'} LIMIT ?`;

const SQL = {
  put: `INSERT INTO approval (session, project, name, waits, caller, expires_at, listed, body)
    SELECT session.id, session.project, ?, ?, ?, ?, ?, ? FROM session WHERE project = ? AND agent = ? AND key = ?
    ON CONFLICT (project, name) DO UPDATE SET waits = excluded.waits, caller = excluded.caller,
    expires_at = excluded.expires_at, listed = excluded.listed, body = excluded.body`,
  get: `SELECT ${COLUMNS}, listed, body FROM (SELECT key AS place, value AS wanted FROM json_each(?2))
    CROSS JOIN approval ON approval.project = ?1 AND name = wanted JOIN session ON session.id = approval.session
    ORDER BY place`,
  find: `SELECT ${COLUMNS}, listed FROM approval JOIN session ON session.id = approval.session
    WHERE approval.project = ? AND name = ?`,
  rowOf: 'SELECT id FROM approval WHERE project = ? AND name = ?',
  size: 'SELECT octet_length(listed) + octet_length(body) AS size FROM approval WHERE project = ? AND name = ?',
  listed: 'SELECT listed FROM approval WHERE id = ?',
  asc: LISTED('>', ''),
  desc: LISTED('<', ''),
  ascOfCaller: LISTED('>', 'AND caller = ?'),
  descOfCaller: LISTED('<', 'AND caller = ?'),
  replace: 'UPDATE approval SET waits = ?, body = ? WHERE project = ? AND name = ? AND body = ?',
} as const;
