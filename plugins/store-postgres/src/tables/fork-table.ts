import { conversationId, SessionExists, type SessionId } from '@plugboard/kernel/contracts';
import { Database } from '../database/database.js';
import { BY_ID, idColumns, toColumn } from './columns.js';
import { addUsage, anySlot, type ProjectUsage, type Used } from './project-usage.js';

/** Copies sessions, inside the database: no message passes through this process. */
export class ForkTable {
  readonly #database: Database;
  readonly #usage: ProjectUsage;

  constructor(database: Database, usage: ProjectUsage) {
    this.#database = database;
    this.#usage = usage;
  }

  /** Does nothing if there is no such session. @throws SessionExists, ProjectQuotaExceeded */
  async fork(source: SessionId, key: string, turns: number): Promise<void> {
    const copy = { ...source, key };
    const values = [...idColumns(source), toColumn(key), Math.min(turns, Number.MAX_SAFE_INTEGER)];
    await this.#database.transaction(async (query) => {
      const [found] = await query<Used & { readonly size: number | null; readonly exists: boolean }>(SQL.size, values);
      if (found?.exists) throw new SessionExists();
      if (found?.size == null) return;
      this.#usage.assertRoom({ ...found, isNew: true }, found.size);
      const [made] = await query<{ readonly made: boolean }>(SQL.copy, [...values, conversationId(copy), anySlot()]);
      if (!made?.made) throw new SessionExists();
    });
  }
}

const SOURCE = `source AS (
    SELECT *, base + least($5::bigint, version - base) AS last FROM plugboard.session WHERE ${BY_ID} FOR KEY SHARE)`;
/** Bytes of what is copied. */
const SIZE = `(SELECT octet_length(metadata)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM plugboard.message WHERE session = source.id AND turn <= last)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM plugboard.record WHERE session = source.id AND turn <= last)
  FROM source)::bigint`;

const SQL = {
  size: `WITH ${SOURCE}
    SELECT ${SIZE} AS size, coalesce(sum(sessions), 0)::bigint AS sessions, coalesce(sum(bytes), 0)::bigint AS bytes,
      EXISTS (SELECT FROM plugboard.session WHERE project = $1 AND agent = $2 AND key = $4) AS exists
    FROM plugboard.usage WHERE project = $1`,
  copy: `WITH ${SOURCE},
    made AS (
      INSERT INTO plugboard.session (project, agent, key, conversation, base, version, created_at, updated_at,
        end_user, title, metadata, bytes)
      SELECT $1, $2, $4, $6, start.base, start.base + last - source.base, now, now, end_user, title, metadata, ${SIZE}
      FROM source, (SELECT ${Database.NOW} AS now, coalesce((SELECT version FROM plugboard.tombstone
        WHERE project = $1 AND agent = $2 AND key = $4 AND expires_at > ${Database.NOW}), 0) AS base) AS start
      ON CONFLICT DO NOTHING RETURNING id, base, bytes),
    messages AS (
      INSERT INTO plugboard.message (session, turn, place, body)
      SELECT made.id, turn - source.base + made.base, place, body
      FROM made, source JOIN plugboard.message ON session = source.id WHERE turn <= last RETURNING place),
    records AS (
      INSERT INTO plugboard.record (session, turn, body)
      SELECT made.id, turn - source.base + made.base, body
      FROM made, source JOIN plugboard.record ON session = source.id WHERE turn <= last),
    summaries AS (
      INSERT INTO plugboard.summary (session, messages, body)
      SELECT made.id, messages, body FROM made, source JOIN plugboard.summary ON session = source.id
      WHERE messages <= (SELECT count(*) FROM messages)),
    counted AS (${addUsage('SELECT $1, $7::int, 1, bytes FROM made')})
    SELECT EXISTS (SELECT FROM made) AS made`,
} as const;
