import type { ApprovalChange, ApprovalPage, SessionId, StoredApproval } from '@plugboard/kernel/contracts';
import type { Query } from '../database/connection-pool.js';
import type { Database } from '../database/database.js';
import { fromColumn, idOf, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

/** An approval without its text. */
type Listed = Omit<StoredApproval, 'text'>;

/** The table of requests for approval. A foreign key deletes them with their session. */
export class ApprovalTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes the values that `put` stores. Of two with the same id, the last one counts. */
  columns(approvals: readonly ApprovalChange[]): readonly unknown[] {
    const changes = [...new Map(approvals.map((one) => [one.id, one])).values()];
    return [
      changes.map(({ id }) => toColumn(id)),
      changes.map(({ waits }) => waits),
      changes.map(({ caller }) => toColumn(caller)),
      changes.map(({ expiresAt }) => expiresAt),
      changes.map(({ listed }) => toColumn(listed)),
      changes.map(({ text }) => toColumn(text)),
    ];
  }

  /** Stores approvals of a session inside a transaction. @param columns of `columns` */
  async put(query: Query, project: string, session: number, columns: readonly unknown[]): Promise<void> {
    await query(SQL.put, [toColumn(project), session, ...columns, anySlot()]);
  }

  async get(project: string, ids: readonly string[], reserve?: (bytes: number) => void): Promise<readonly StoredApproval[]> {
    const values = [toColumn(project), ids.map(toColumn)];
    if (reserve) for (const { bytes } of await this.#database.run<{ readonly bytes: number }>(SQL.sizes, values)) reserve(bytes);
    const rows = await this.#database.run<ApprovalRow & { readonly body: string }>(SQL.get, values);
    return rows.map((row) => ({ ...approvalOf(row), text: fromColumn(row.body) }));
  }

  async find(project: string, id: string): Promise<Listed | undefined> {
    const [row] = await this.#database.run<ApprovalRow>(SQL.find, [toColumn(project), toColumn(id)]);
    return row && approvalOf(row);
  }

  /** Reads the sizes of a page before its texts. */
  async waiting(project: string, page: ApprovalPage): Promise<readonly Listed[]> {
    const { limit, order, after, agents, caller, expiresAfter = 0, reserve } = page;
    const last = after === undefined ? ENDS[order] : await this.#rowOf(project, after);
    if (last === undefined) return [];
    const filter = [agents?.map(toColumn) ?? null, caller === undefined ? null : toColumn(caller)];
    const values = [toColumn(project), last, expiresAfter, ...filter, limit];
    const sql = SQL[caller === undefined ? order : (`${order}OfCaller` as const)];
    const sizes = await this.#database.run<{ readonly id: number; readonly bytes: number }>(sql, values);
    if (reserve) for (const { bytes } of sizes) reserve(bytes);
    const rows = await this.#database.run<ApprovalRow>(SQL.listed, [sizes.map(({ id }) => id)]);
    return rows.map(approvalOf);
  }

  /** @returns whether the approval was still as it was read. */
  async replace(read: StoredApproval, { waits, text }: Pick<ApprovalChange, 'waits' | 'text'>): Promise<boolean> {
    const project = toColumn(read.session.project);
    const values = [project, toColumn(read.id), toColumn(read.text), waits, toColumn(text), anySlot()];
    const rows = await this.#database.transaction((query) => query<{ readonly replaced: boolean }>(SQL.replace, values));
    return rows[0]?.replaced ?? false;
  }

  async #rowOf(project: string, id: string): Promise<number | undefined> {
    const [row] = await this.#database.run<{ readonly id: number }>(SQL.rowOf, [toColumn(project), toColumn(id)]);
    return row?.id;
  }
}

interface ApprovalRow extends SessionId {
  readonly name: string;
  readonly waits: boolean;
  readonly caller: string;
  readonly expires_at: number;
  readonly listed: string;
}

function approvalOf(row: ApprovalRow): Listed {
  const { name, waits, caller, expires_at: expiresAt, listed } = row;
  return { id: fromColumn(name), session: idOf(row), waits, caller: fromColumn(caller), expiresAt, listed: fromColumn(listed) };
}

/** Where a list begins. */
const ENDS = { asc: 0, desc: Number.MAX_SAFE_INTEGER } as const;

const COLUMNS = 'name, session.project, agent, key, waits, caller, expires_at, listed';
const JOINED = 'plugboard.approval JOIN plugboard.session ON session.id = approval.session';
/** Without a caller, `$5` is null, and named so that it has a type. */
const WAITING = (compare: '<' | '>', caller: 'caller = $5' | '$5::text IS NULL') =>
  `SELECT approval.id, octet_length(listed)::bigint AS bytes FROM ${JOINED}
  WHERE approval.project = $1 AND waits AND ${caller} AND approval.id ${compare} $2::bigint AND expires_at > $3::bigint
    AND ($4::text[] IS NULL OR agent = ANY($4))
  ORDER BY approval.id ${compare === '>' ? 'ASC' : 'DESC'} LIMIT $6`;

const SQL = {
  put: `WITH given AS (
      SELECT * FROM unnest($3::text[], $4::boolean[], $5::text[], $6::bigint[], $7::text[], $8::text[])
        AS one (name, waits, caller, expires_at, listed, body)),
    before AS (
      SELECT octet_length(approval.listed) + octet_length(approval.body) AS bytes
      FROM plugboard.approval JOIN given USING (name) WHERE project = $1),
    added AS (
      INSERT INTO plugboard.approval (session, project, name, waits, caller, expires_at, listed, body)
      SELECT $2::bigint, $1, given.* FROM given
      ON CONFLICT (project, name) DO UPDATE SET waits = excluded.waits, caller = excluded.caller,
        expires_at = excluded.expires_at, listed = excluded.listed, body = excluded.body),
    change AS (
      SELECT (SELECT sum(octet_length(listed) + octet_length(body)) FROM given)
        - coalesce((SELECT sum(bytes) FROM before), 0) AS more),
    resized AS (UPDATE plugboard.session SET bytes = bytes + more FROM change WHERE id = $2::bigint)
    ${addUsage('SELECT $1, $9::int, 0, more FROM change')}`,
  sizes: `SELECT octet_length(listed)::bigint + octet_length(body) AS bytes
    FROM plugboard.approval WHERE project = $1 AND name = ANY($2::text[])`,
  get: `SELECT ${COLUMNS}, body FROM unnest($2::text[]) WITH ORDINALITY AS wanted (wanted, place)
    JOIN ${JOINED} ON approval.project = $1 AND name = wanted ORDER BY place`,
  find: `SELECT ${COLUMNS} FROM ${JOINED} WHERE approval.project = $1 AND name = $2`,
  rowOf: 'SELECT id FROM plugboard.approval WHERE project = $1 AND name = $2',
  listed: `SELECT ${COLUMNS} FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (wanted, place)
    JOIN ${JOINED} ON approval.id = wanted ORDER BY place`,
  asc: WAITING('>', '$5::text IS NULL'),
  desc: WAITING('<', '$5::text IS NULL'),
  ascOfCaller: WAITING('>', 'caller = $5'),
  descOfCaller: WAITING('<', 'caller = $5'),
  replace: `WITH changed AS (
      UPDATE plugboard.approval SET waits = $4, body = $5 WHERE project = $1 AND name = $2 AND body = $3
      RETURNING session, octet_length($5) - octet_length($3) AS more),
    resized AS (UPDATE plugboard.session SET bytes = bytes + more FROM changed WHERE id = changed.session),
    counted AS (${addUsage('SELECT $1, $6::int, 0, more FROM changed')})
    SELECT EXISTS (SELECT FROM changed) AS replaced`,
} as const;
