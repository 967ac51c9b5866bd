import { assertFits, type ProjectQuotas } from '@plugboard/store-kit';
import type { Database } from '../database/database.js';
import { toColumn } from './columns.js';

/** Rows of one project. A commit waits only for another one that picked the same row. */
const SLOTS = 8;

/** A transaction uses one slot, so that two transactions never wait for each other. */
export function anySlot(): number {
  return Math.floor(Math.random() * SLOTS);
}

/**
 * Adds to what projects store.
 * @param rows selects project, slot, sessions and bytes, one row per project
 */
export const addUsage = (rows: string) =>
  `INSERT INTO plugboard.usage AS used (project, slot, sessions, bytes) ${rows}
  ON CONFLICT (project, slot) DO UPDATE SET sessions = used.sessions + excluded.sessions, bytes = used.bytes + excluded.bytes`;

/** What each project stores, against what it may store. */
export class ProjectUsage {
  readonly #database: Database;
  readonly #quotas: ProjectQuotas;

  constructor(database: Database, quotas: ProjectQuotas) {
    this.#database = database;
    this.#quotas = quotas;
  }

  get quotas(): ProjectQuotas {
    return this.#quotas;
  }

  /**
   * Checks that a project may store so many bytes more.
   * @param id of the session that they belong to, as columns. Undefined: they belong to none.
   * @throws ProjectQuotaExceeded
   */
  async assertFits(project: string, bytes: number, id?: readonly [string, string, string]): Promise<void> {
    const [used] = await this.#database.run<Used>(SQL, [toColumn(project), id?.[1] ?? null, id?.[2] ?? null]);
    this.assertRoom(used, bytes);
  }

  /** @throws ProjectQuotaExceeded */
  assertRoom(used: Used | undefined, bytes: number): void {
    if (used) assertFits(this.#quotas, used, bytes, () => used.isNew);
  }
}

export interface Used {
  readonly sessions: number;
  readonly bytes: number;
  /** Whether the session does not exist yet. */
  readonly isNew: boolean;
}

const SQL = `SELECT coalesce(sum(sessions), 0)::bigint AS sessions, coalesce(sum(bytes), 0)::bigint AS bytes,
    $2::text IS NOT NULL AND NOT EXISTS (SELECT FROM plugboard.session WHERE project = $1 AND agent = $2 AND key = $3) AS "isNew"
  FROM plugboard.usage WHERE project = $1`;
