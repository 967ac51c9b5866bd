import type { DatabaseSync } from 'node:sqlite';
import { assertFits, type ProjectQuotas } from '@plugboard/store-kit';

/** What a project takes, or by how much that changes. */
export interface Usage {
  readonly project: string;
  /** By default none. */
  readonly sessions?: number;
  readonly bytes: number;
}

const NOTHING = { sessions: 0, bytes: 0 };

/** What each project stores, counted in memory. Only committed changes are added. */
export class ProjectUsage {
  readonly #quotas: ProjectQuotas;
  readonly #projects = new Map<string, typeof NOTHING>();

  constructor(database: DatabaseSync, quotas: ProjectQuotas) {
    this.#quotas = quotas;
    for (const sql of Object.values(SQL)) {
      for (const { project, sessions, bytes } of database.prepare(sql).iterate()) {
        this.add({ project: String(project), sessions: Number(sessions), bytes: Number(bytes) });
      }
    }
  }

  /** @param isNew whether the bytes make a new session. @throws ProjectQuotaExceeded */
  assertFits(project: string, bytes: number, isNew: () => boolean): void {
    assertFits(this.#quotas, this.#projects.get(project) ?? NOTHING, bytes, isNew);
  }

  /** Adds to what a project stores, or takes away. */
  add({ project, sessions = 0, bytes }: Usage): void {
    const used = this.#projects.get(project) ?? NOTHING;
    const now = { sessions: used.sessions + sessions, bytes: used.bytes + bytes };
    if (now.sessions > 0 || now.bytes > 0) this.#projects.set(project, now);
    else this.#projects.delete(project);
  }
}

/** The size of an idempotency record in bytes. */
export const RECORD_SIZE =
  'octet_length(route) + octet_length(key) + octet_length(fingerprint) + coalesce(octet_length(answer), 0)';

/** Without the index by key: it would visit the rows in another order than they are stored in. */
const SQL = {
  sessions: 'SELECT project, count(*) AS sessions, sum(bytes) AS bytes FROM session GROUP BY project',
  records: `SELECT project, 0 AS sessions, sum(${RECORD_SIZE}) AS bytes FROM idempotency NOT INDEXED GROUP BY project`,
  pendingCalls: `SELECT project, 0 AS sessions, sum(octet_length(messages)) AS bytes
    FROM (SELECT DISTINCT project, call FROM pending_tool_call_key) JOIN pending_tool_call ON id = call GROUP BY project`,
} as const;
