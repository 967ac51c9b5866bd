import type { DatabaseSync } from 'node:sqlite';
import { ProjectQuotaExceeded } from '@plugboard/kernel/contracts';

export interface ProjectQuotas {
  /** Maximum number of sessions of one project. */
  readonly maxSessions: number;
  /** Maximum size of the sessions of one project: messages, documents and metadata as JSON, in bytes. */
  readonly maxBytes: number;
}

/** What the sessions of a project take. */
export interface Usage {
  readonly sessions: number;
  readonly bytes: number;
}

const NOTHING: Usage = { sessions: 0, bytes: 0 };

/** What each project stores, counted in memory: the file belongs to this process alone. Only committed changes are added. */
export class ProjectUsage {
  readonly #quotas: ProjectQuotas;
  readonly #projects = new Map<string, Usage>();

  constructor(database: DatabaseSync, quotas: ProjectQuotas) {
    this.#quotas = quotas;
    for (const row of database.prepare(SQL).iterate()) {
      this.#projects.set(String(row.project), { sessions: Number(row.sessions), bytes: Number(row.bytes) });
    }
  }

  /**
   * Checks that a project may store so many bytes more.
   *
   * @param isNew whether they make a new session. Called only if the project has reached its number of sessions.
   * @throws ProjectQuotaExceeded
   */
  assertFits(project: string, bytes: number, isNew: () => boolean): void {
    const { maxSessions, maxBytes } = this.#quotas;
    const used = this.#projects.get(project) ?? NOTHING;
    if (used.bytes + bytes > maxBytes) throw new ProjectQuotaExceeded('maxBytesPerProject', maxBytes);
    if (used.sessions >= maxSessions && isNew()) throw new ProjectQuotaExceeded('maxSessionsPerProject', maxSessions);
  }

  /** Adds to what a project stores, or takes away. */
  add(project: string, { sessions, bytes }: Usage): void {
    const used = this.#projects.get(project) ?? NOTHING;
    const now = { sessions: used.sessions + sessions, bytes: used.bytes + bytes };
    if (now.sessions > 0 || now.bytes > 0) this.#projects.set(project, now);
    else this.#projects.delete(project);
  }
}

const SQL = 'SELECT project, count(*) AS sessions, sum(bytes) AS bytes FROM session GROUP BY project';
